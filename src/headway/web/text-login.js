// The words of the login page.

export const LOGIN_WORDS = {
  "login.title": ["Log in", "登录"],
  "login.about": [
    "This server asks who you are. Paste an access token to go on.",
    "此服务器需要确认身份。请粘贴访问令牌。",
  ],
  "login.token": ["Access token", "访问令牌"],
  "login.show": ["Show", "显示"],
  "login.hide": ["Hide", "隐藏"],
  "login.send": ["Log in", "登录"],
  "login.failed": [
    "This token was not accepted. It may be mistyped, revoked or expired.",
    "令牌未被接受：可能有误、已撤销或已过期。",
  ],
  "login.how": ["No token yet?", "还没有令牌？"],
  "login.how.about": [
    "Make one on the machine that runs the server. It is shown once.",
    "请在运行服务器的机器上创建。令牌只显示一次。",
  ],
  "login.scopes": [
    "Scopes: read, submit, operate, admin.",
    "权限范围：read（读取）、submit（提交）、operate（操作）、admin（管理）。",
  ],
};
