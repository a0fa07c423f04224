// The words of the form that tries a route; they come with the form.

export const TRY_WORDS = {
  "try.send": ["Send", "发送"],
  "try.stop": ["Stop", "停止"],
  "try.unset": ["not sent", "不发送"],
  "try.list": ["comma between values", "多个值用逗号分隔"],
  "try.body": ["Body", "请求体"],
  "try.notjson": [
    "This is not valid JSON; it is sent as it stands.",
    "这不是有效的 JSON，将原样发送。",
  ],
  "try.waiting": ["waiting for the answer…", "正在等待响应…"],
  "try.receiving": ["receiving…", "正在接收…"],
  "try.stopped": ["stopped", "已停止"],
  "try.headers": ["Response headers", "响应头"],
  "try.empty": ["The body is empty.", "响应体为空。"],
  "try.binary": ["The body is not text, and is not shown.", "响应体不是文本，不予显示。"],
  "try.cut": ["Only the beginning is shown.", "只显示了开头部分。"],
};
