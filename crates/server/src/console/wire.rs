//! Words of the wire in the reader's language: states, types and kinds that the record has as one
//! word. In English they are shown as they are, as logs and the command line have them; one that
//! an operator made up is shown as it is in Chinese, too.

use super::words::Words;

/// What a word is of: the same one means different things in two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The state of a contract.
    Contract,
    /// The type of a mail.
    Mail,
    Priority,
    /// The step at which a mail was rejected.
    Step,
    /// The kind of an audit's entry, or what a subscriber is told of.
    Entry,
    Actor,
    Token,
    /// Where a memory was found.
    Tier,
}

pub fn word<'a>(of: Of, wire: &'a str, w: &Words) -> &'a str {
    let chinese = table(of).iter().find(|it| it.0 == wire).filter(|_| w.is_chinese());
    chinese.map_or(wire, |it| it.1)
}

fn table(of: Of) -> &'static [(&'static str, &'static str)] {
    match of {
        Of::Contract => &[
            ("pending", "待接受"),
            ("accepted", "已接受"),
            ("in_progress", "进行中"),
            ("review", "评审中"),
            ("passed", "已通过"),
            ("failed", "未通过"),
            ("escalated", "已上报"),
            ("cancelled", "已取消"),
        ],
        Of::Mail => &[
            ("contract", "合同"),
            ("report", "报告"),
            ("approval_request", "审批请求"),
            ("info", "通知"),
            ("escalation", "上报"),
            ("question", "提问"),
            ("verdict", "评定"),
            ("staffing_request", "人员请求"),
            ("tool_request", "工具请求"),
            ("tech_review", "技术评审"),
            ("feasibility_request", "可行性询问"),
            ("requirement_clarification", "需求澄清"),
            ("deployment_approval", "部署批准"),
        ],
        Of::Priority => &[("low", "低"), ("medium", "中"), ("high", "高"), ("critical", "紧急")],
        Of::Step => &[
            ("sender", "发件人"),
            ("recipient", "收件人"),
            ("contact", "联系人"),
            ("type", "类型"),
            ("contract", "合同"),
            ("attachments", "附件"),
            ("fields", "字段"),
        ],
        Of::Entry => &[
            ("ruling", "裁定"),
            ("permission.requested", "请求许可"),
            ("permission.decided", "许可已决定"),
            ("permission.escalated", "许可已上报"),
            ("permission.extended", "许可已延长"),
            ("permission.inquired", "询问智能体"),
            ("permission.expired", "许可已过期"),
            ("call.outcome", "调用结果"),
            ("rule.made", "规则已创建"),
            ("rule.revoked", "规则已撤回"),
            ("rule.narrowed", "规则已收窄"),
            ("org.changed", "组织已变更"),
            ("token.made", "令牌已创建"),
            ("token.revoked", "令牌已撤回"),
            ("sign_in", "登录"),
            ("sign_in.refused", "登录被拒"),
            ("sign_out", "退出登录"),
            ("run.completed", "运行已完成"),
            ("run.failed", "运行失败"),
            ("run.cancelled", "运行已取消"),
            ("child.spawned", "交给小组"),
            ("person.spoke", "人员发言"),
            ("wrapup.requested", "要求收尾"),
            ("pause.requested", "要求暂停"),
            ("run.unpaused", "运行已恢复"),
            ("memory.forgotten", "记忆已遗忘"),
            ("mail.rejected", "邮件被拒"),
            ("contract.changed", "合同已变更"),
        ],
        Of::Actor => {
            &[("user", "人员"), ("service", "程序"), ("agent", "智能体"), ("system", "系统")]
        }
        Of::Token => &[("human", "人员"), ("service", "程序"), ("agent", "智能体")],
        Of::Tier => &[
            ("preferences", "偏好"),
            ("enterprise", "企业"),
            ("history", "历史"),
            ("blackboard", "黑板"),
            ("project", "项目"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use chancery_domain::contract::State;
    use chancery_domain::mail::{Priority, Step};

    use super::*;
    use crate::console::words::{EN, ZH};

    #[track_caller]
    fn check(of: Of, wire: &str) {
        assert_eq!(word(of, wire, &EN), wire);
        let chinese = word(of, wire, &ZH);
        assert!(chinese.chars().all(|it| !it.is_ascii()), "{of:?} {wire} is not translated");
    }

    #[test]
    fn every_word_of_the_record_is_said_in_chinese() {
        State::ALL.iter().for_each(|it| check(Of::Contract, it.as_str()));
        Step::ALL.iter().for_each(|it| check(Of::Step, it.as_str()));
        Priority::ALL.iter().for_each(|it| check(Of::Priority, it.as_str()));
        let builtin = include_str!("../organisation/builtin/mail.yaml");
        let types = builtin.lines().filter_map(|it| it.strip_prefix("  ")?.strip_suffix(':'));
        let types: Vec<&str> = types.filter(|it| !it.starts_with(' ')).collect();
        assert!(types.len() > 10, "{types:?}");
        types.iter().for_each(|it| check(Of::Mail, it));
        let (_, kinds) =
            include_str!("../../../domain/src/audit.rs").split_once("pub mod kind {").unwrap();
        let kinds = kinds.split("\n}").next().unwrap().lines();
        let kinds: Vec<&str> = kinds.filter_map(|it| it.split('"').nth(1)).collect();
        assert!(kinds.len() > 20, "{kinds:?}");
        kinds.iter().for_each(|it| check(Of::Entry, it));
        assert_eq!(word(Of::Mail, "of_our_own", &ZH), "of_our_own");
    }
}
