// The audit: who did what, newest first, and all that happens as it happens.

import { each, html } from "../../../render.js";
import { isKnown, text } from "../../../text.js";
import { call } from "../../api.js";
import { exactTime } from "../../format.js";
import { button, empty, when } from "../../parts.js";
import { adjust, link } from "../../route.js";

const SIZE = 50;

export const screen = {
  words: {
    "audit.about": ["Every action of an operator, a program or an upstream on a gate, a schedule or a job. It cannot be changed.", "管理员、程序或上游对门控、计划、任务的每一次操作。不可篡改。"],
    "audit.view": ["What is shown", "显示内容"],
    "audit.people": ["Who did what", "操作记录"],
    "audit.all": ["Everything that happens", "全部事件"],
    "audit.none": ["Nobody has done anything yet", "还没有任何操作"],
    "audit.none.about": ["When somebody pauses a lane, closes an upstream, cancels a job or makes a token, it stands here with their name.", "当有人暂停通道、关闭上游、取消任务或创建令牌时，都会连同其名称记录在此。"],
    "audit.when": ["When", "时间"],
    "audit.who": ["Who", "操作者"],
    "audit.what": ["What", "操作"],
    "audit.subject": ["To what", "对象"],
    "audit.detail": ["Detail", "详情"],
    "audit.older": ["Older", "更早"],
    "audit.newest": ["Newest", "最新"],
    "audit.job": ["request {id}", "请求 {id}"],
    "audit.filter": ["Filter these", "筛选当前页"],
    "audit.end": ["This is the beginning of what is kept.", "已到保留记录的开头。"],
    "audit.event.set": ["set", "修改设置"],
    "audit.event.reset": ["reset", "重置设置"],
    "audit.event.gate_close": ["closed", "关闭"],
    "audit.event.gate_open": ["opened", "打开"],
    "audit.event.gate_pause": ["paused", "暂停"],
    "audit.event.gate_resume": ["resumed", "恢复"],
    "audit.event.pause": ["paused", "暂停"],
    "audit.event.resume": ["resumed", "恢复"],
    "audit.event.cancel": ["cancelled", "取消"],
    "audit.event.pin": ["pinned", "置顶"],
    "audit.event.unpin": ["unpinned", "取消置顶"],
    "audit.event.declare": ["declared", "声明"],
    "audit.event.undeclare": ["no longer declared", "取消声明"],
    "audit.event.learned": ["learned", "学到新限额"],
    "audit.event.learned_reset": ["forgot what was learned", "遗忘所学"],
    "audit.event.schedule": ["scheduled", "保存计划"],
    "audit.event.unschedule": ["removed the schedule", "删除计划"],
    "audit.event.pause_schedule": ["paused", "暂停"],
    "audit.event.resume_schedule": ["resumed", "恢复"],
    "audit.event.slot_end": ["ended the slot", "结束名额"],
    "audit.event.token_made": ["made the token", "创建令牌"],
    "audit.event.token_revoked": ["revoked the token", "撤销令牌"],
    "audit.event.budget_set": ["set the budget", "设置预算"],
    "audit.event.budget_removed": ["removed the budget", "删除预算"],
    "audit.event.budget_used_up": ["used up", "预算用尽"],
    "audit.event.channel_add": ["added", "添加"],
    "audit.event.channel_change": ["changed", "修改"],
    "audit.event.channel_remove": ["removed", "移除"],
    "audit.event.feed_add": ["subscribed", "订阅"],
    "audit.event.feed_change": ["changed", "修改"],
    "audit.event.feed_remove": ["unsubscribed", "取消订阅"],
    "audit.event.subscription_add": ["added", "添加"],
    "audit.event.subscription_change": ["changed", "修改"],
    "audit.event.subscription_remove": ["removed", "移除"],
    "audit.event.purge": ["cleaned up", "清理"],
    "audit.event.grant": ["started", "启动"],
    "audit.event.submit": ["submitted", "提交"],
    "audit.event.succeed": ["completed", "完成"],
    "audit.event.fail": ["failed", "失败"],
    "audit.event.retry": ["will be retried", "将重试"],
    "audit.event.pushback": ["pushed back", "被限流"],
  },

  title: () => text("nav.audit"),

  ask({ params }) {
    if (params.all) return { trail: () => newestTrail(params.before ? Number(params.before) : null) };
    return { trail: () => newestAudit(params.before) };
  },

  concerns: ({ who, job }, { route }) => !route.params.before && (Boolean(route.params.all) || Boolean(who) || job === null),

  show(view) {
    const { trail } = view.data;
    const { params } = view.route;
    const items = (trail?.items ?? []).filter((item) => fits(item, params.q));
    return html`<div class="row between">
        <div class="segments" role="group" aria-label=${text("audit.view")}>
          <button type="button" aria-pressed=${String(!params.all)} @click=${() => adjust({ all: null, before: null })}>${text("audit.people")}</button>
          <button type="button" aria-pressed=${String(Boolean(params.all))} @click=${() => adjust({ all: 1, before: null })}>${text("audit.all")}</button>
        </div>
        <input type="search" class="filter" data-filter aria-label=${text("audit.filter")} placeholder=${text("audit.filter")} autocomplete="off" .value=${params.q ?? ""} @input=${(event) => adjust({ q: event.target.value })} />
      </div>
      <p class="muted lead">${text("audit.about")}</p>
      ${trail?.items.length === 0 && !params.before ? empty({ icon: "scroll", title: text("audit.none"), about: text("audit.none.about") }) : table(items)}
      <nav class="pager" aria-label=${text("pager.pages")}>
        ${button({ label: text("audit.newest"), icon: "left", needs: null, unless: params.before ? null : text("pager.first"), run: () => adjust({ before: null }) })}
        ${button({ label: text("audit.older"), icon: "right", needs: null, unless: trail?.older ? null : text("audit.end"), run: () => adjust({ before: trail.older }) })}
      </nav>`;
  },
};

async function newestAudit(before) {
  const { items } = await call("listAudit", { before, limit: SIZE });
  return { items, older: items.length === SIZE ? items.at(-1).id : null };
}

/** The trail is read forwards; its end is what people want to see first. */
async function newestTrail(before) {
  const end = before ?? (await call("listTrail", { after: 0, limit: 1 })).newest + 1;
  const begin = Math.max(0, end - SIZE - 1);
  const trail = await call("listTrail", { after: begin, limit: SIZE });
  // Some in between may be gone with their jobs, so the number of those found says nothing.
  return { items: trail.items.filter(({ id }) => id < end).toReversed(), older: begin + 1 > trail.oldest ? begin + 1 : null };
}

function fits(item, q) {
  if (!q) return true;
  const all = [item.who, item.event, item.subject, item.detail, item.job, item.type].join(" ").toLowerCase();
  return q.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

function table(items) {
  return html`<div class="table-frame"><table>
    <thead><tr><th scope="col">${text("audit.when")}</th><th scope="col">${text("audit.who")}</th><th scope="col">${text("audit.what")}</th><th scope="col">${text("audit.subject")}</th><th scope="col">${text("audit.detail")}</th></tr></thead>
    <tbody>${each(items, ({ id }) => id, row)}</tbody></table></div>`;
}

function row(item) {
  return html`<tr data-row>
    <td class="tight">${when(item.at)}<span class="visually-hidden"> ${exactTime(Date.parse(item.at))}</span></td>
    <td>${item.who || html`<span class="muted">–</span>`}</td>
    <td><span class="what">${isKnown(`audit.event.${item.event}`) ? text(`audit.event.${item.event}`) : item.event}</span></td>
    <td>${subject(item)}</td>
    <td class="detail">${item.detail}</td>
  </tr>`;
}

function subject({ job, subject: named, type }) {
  if (job !== null && job !== undefined) return html`<a href=${link("requests", job)}>${text("audit.job", { id: String(job) })}</a> <span class="muted">${type}</span>`;
  const [kind, ...rest] = (named ?? "").split(":");
  const name = rest.join(":");
  if (kind === "upstream" && name) return html`<a href=${link("upstreams", name)}>${name}</a> <span class="muted">${kind}</span>`;
  return html`${name || named} <span class="muted">${name ? kind : ""}</span>`;
}
