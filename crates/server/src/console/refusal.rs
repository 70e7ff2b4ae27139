//! Why something was refused, for whoever reads a page. What a route says is English; a reader of
//! Chinese is told by the refusal's code, with the route's own words beside it.

use chancery_api::Problem;

use super::html::shown;
use super::words::Words;

/// Ready for a page.
pub fn said(problem: &Problem, w: &'static Words) -> String {
    let detail = shown(&problem.detail);
    match chinese(&problem.code).filter(|_| w.is_chinese()) {
        Some(sentence) => format!("{sentence} <code lang=\"en\">{detail}</code>"),
        None => detail,
    }
}

fn chinese(code: &str) -> Option<&'static str> {
    Some(match code {
        "not_found" => "没有找到：可能已不存在，或不属于你。",
        "forbidden" => "你无权这样做。",
        "PERMISSION_DENIED" => "规则拒绝了它。",
        "mail_rejected" => "邮件未送达。",
        "already_decided" => "这个问题已有答复。",
        "run_ended" => "运行已结束，不再接受任何内容。",
        "not_resumable" => "只有暂停的运行，或在模型处失败的运行，才能继续。",
        "not_legal_now" => "现在不能这样做。",
        "does_not_expire" => "它不会过期，无需延长。",
        "long_enough" => "它已有允许的最长时限。",
        "asked_enough" => "已达到询问次数上限：请作出决定。",
        "nobody_to_ask" => "没有可以询问的智能体。",
        "no_answer" => "没有得到回答。",
        "unknown_member" => "该智能体不在此小组中。",
        "not_rememberable" => "此类调用每次都要询问，不能记住。",
        "not_narrower" => "规则已失效，或这样会扩大其范围。",
        "not_forkable" => "不能从这个运行分叉。",
        "organisation_changed" => "期间已有其他版本生效：请重新起草。",
        "bad_organisation" => "组织文件有错误。",
        "too_large" => "内容过大。",
        "too_long" => "内容过长。",
        "too_many_requests" => "请求过于频繁，请稍后再试。",
        "too_slow" => "请求传输过慢。",
        "unavailable" => "存储暂时不可用，请稍后再试。",
        "internal" => "服务器内部出错。",
        "method_not_allowed" => "此地址不支持这种操作。",
        "bad_request" | "unreadable" => "填写的内容有误。",
        _ => return None,
    })
}
