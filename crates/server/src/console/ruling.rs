//! The record's sentences in the reader's language: of rulings above all, and of what else is told
//! in words. The record is in English and stays so: what is shown in Chinese is made from what the
//! recorded sentence names. One that is not known here, or that an operator wrote, is shown as it
//! is.

use super::html::{shown, ticked};
use super::pattern::{Pattern, in_chinese};
use super::words::Words;

const SENTENCES: &[Pattern] = &[
    // A sentence with who said so.
    ("{} (layer `{}`, rule `{}`)", "{1~}（{2~}层，规则 `{3}`）"),
    ("`{}` is who the server says", "`{1}` 的身份由服务器确认"),
    ("there is no agent `{}`", "没有智能体 `{1}`"),
    ("agent `{}` is deactivated", "智能体 `{1}` 已停用"),
    ("the arguments fit", "参数符合要求"),
    ("there is no tool `{}`", "没有工具 `{1}`"),
    ("the arguments do not fit the schema of `{}`: {}", "参数不符合 `{1}` 的格式：“{2}”"),
    ("`{}` is within the delegation", "`{1}` 在委托范围内"),
    (
        "`{}` matches `{}` in the denied tools of the run's delegation",
        "`{1}` 与本次运行委托中被拒绝的工具 `{2}` 相符",
    ),
    (
        "`{}` is not among the allowed tools of the run's delegation",
        "`{1}` 不在本次运行委托所允许的工具之内",
    ),
    (
        "`{}` matches `{}` in the denied tools of user `{}`",
        "`{1}` 与用户 `{3}` 被拒绝的工具 `{2}` 相符",
    ),
    ("`{}` is not among the allowed tools of user `{}`", "`{1}` 不在用户 `{2}` 所允许的工具之内"),
    (
        "`{}` matches `{}` in the denied tools of role `{}`",
        "`{1}` 与角色 `{3}` 被拒绝的工具 `{2}` 相符",
    ),
    ("`{}` is not among the tools of role `{}`", "`{1}` 不在角色 `{2}` 的工具之内"),
    ("role `{}` binds `{}` by its entry `{}`", "角色 `{1}` 以条目 `{3}` 绑定了 `{2}`"),
    ("role `{}` has no limit", "角色 `{1}` 没有限制"),
    (
        "`{}` is of low risk, and the role lists it by its name",
        "`{1}` 为低风险，且角色按名称列出了它",
    ),
    (
        "`{}` is of medium risk, and the role lists it by its name",
        "`{1}` 为中风险，且角色按名称列出了它",
    ),
    (
        "`{}` is of high risk, and the role lists it by its name",
        "`{1}` 为高风险，且角色按名称列出了它",
    ),
    ("`{}` is of low risk", "`{1}` 为低风险"),
    ("`{}` is of medium risk", "`{1}` 为中风险"),
    ("`{}` is of high risk", "`{1}` 为高风险"),
    ("`{}` has the capability `{}`: allowed", "`{1}` 具有能力 `{2}`：允许"),
    ("`{}` has the capability `{}`: someone must approve it", "`{1}` 具有能力 `{2}`：须有人批准"),
    (
        "`{}` has the capability `{}`: a person must approve it",
        "`{1}` 具有能力 `{2}`：必须由真人批准",
    ),
    ("`{}` has the capability `{}`: denied", "`{1}` 具有能力 `{2}`：拒绝"),
    ("the policy says of `{}`: allowed", "策略对 `{1}` 的规定：允许"),
    ("the policy says of `{}`: someone must approve it", "策略对 `{1}` 的规定：须有人批准"),
    ("the policy says of `{}`: a person must approve it", "策略对 `{1}` 的规定：必须由真人批准"),
    ("the policy says of `{}`: denied", "策略对 `{1}` 的规定：拒绝"),
    ("nothing to go by", "没有相关规定"),
    ("`{}` is outside of what role `{}` may read", "`{1}` 超出角色 `{2}` 可读取的范围"),
    ("`{}` is outside of what role `{}` may write", "`{1}` 超出角色 `{2}` 可写入的范围"),
    ("`{}` is not the name of a branch", "`{1}` 不是分支名称"),
    ("branch `{}` is protected", "分支 `{1}` 受保护"),
    ("the run has used up {} of {} tokens", "本次运行已用 {1} 个词元，上限 {2}"),
    ("the run has used up {} of {} steps", "本次运行已用 {1} 步，上限 {2}"),
    ("`{}` calls `{}` more than {} times a minute", "`{1}` 每分钟调用 `{2}` 超过 {3} 次"),
    ("`{}` is not what it was when this was granted", "`{1}` 已不是批准时的那个工具"),
    ("the rule `{}` forbids it", "规则 `{1}` 禁止"),
    ("the rule `{}` wants it asked", "规则 `{1}` 要求询问"),
    (
        "the rule names a tool that is not there yet, and so cannot be checked",
        "规则提到的工具尚不存在，因此无法检查",
    ),
    ("there is no group `{}`", "没有小组 `{1}`"),
    ("group `{}` has no member that is at work", "小组 `{1}` 没有在岗成员"),
    (
        "group `{}` is at work above this run already: it would wait for itself",
        "小组 `{1}` 已在上级运行中：它将等待自己",
    ),
    (
        "goals are handed on at most {} deep, and this run is that deep",
        "目标最多转交 {1} 层，本次运行已达此深度",
    ),
    ("`{}` may not write to `{}`: it writes to {}", "`{1}` 不可写信给 `{2}`：它可写给 {3}"),
    ("there is no agent `{}` at work", "没有在岗的智能体 `{1}`"),
    (
        "role `{}` may not write to branch `{}`: it may to {}",
        "角色 `{1}` 不可写入分支 `{2}`：可写入 {3}",
    ),
    ("the rule could not be evaluated: {}", "规则无法求值：{1}"),
    ("the rules cannot read the arguments of `{}`: {}", "规则无法读取 `{1}` 的参数：{2}"),
    ("agent `{}` is not active", "智能体 `{1}` 未启用"),
    ("there is no mail type `{}`: there are {}", "没有邮件类型 `{1}`：现有 {2}"),
    ("`{}` may not send `{}`", "`{1}` 不可发送 `{2}`"),
    ("`{}` may not be sent to `{}`: only {}", "`{1}` 不可发给 `{2}`：只可发 {3}"),
    (
        "`{}` goes up the chain of command, not to `{}`",
        "`{1}` 只能沿指挥链向上发送，不能发给 `{2}`",
    ),
    (
        "`{}` goes down the chain of command, not to `{}`",
        "`{1}` 只能沿指挥链向下发送，不能发给 `{2}`",
    ),
    ("`{}` goes across the chain of command, not to `{}`", "`{1}` 只能平级发送，不能发给 `{2}`"),
    (
        "a contract goes to a direct report alone, and `{}` does not report to `{}`",
        "合同只能发给直接下属，而 `{1}` 的上级不是 `{2}`",
    ),
    ("there is no contract `{}` of yours", "你没有合同 `{1}`"),
    (
        "writing to `{}` needs an active contract that allows it across departments",
        "写信给 `{1}` 需要一份允许跨部门的有效合同",
    ),
    (
        "attachment `{}` is outside of what role `{}` may read",
        "附件 `{1}` 超出角色 `{2}` 可读取的范围",
    ),
    ("attachment `{}` is no path beneath the workspace", "附件 `{1}` 不是工作区内的路径"),
    (
        "attachment `{}` is denied to everyone: it may hold a secret, or run by itself",
        "附件 `{1}` 对所有人禁止：其中可能有机密，或会自行运行",
    ),
    ("`{}` is no path beneath the workspace", "`{1}` 不是工作区内的路径"),
    (
        "`{}` is denied to everyone: it may hold a secret, or run by itself",
        "`{1}` 对所有人禁止：其中可能有机密，或会自行运行",
    ),
    (
        "nothing goes to `{}` without an approval: there is no live `{}` to you that names `{}` and `{}`",
        "未经批准不得部署到 `{1}`：没有发给你、写明 `{3}` 和 `{4}` 且仍有效的 `{2}`",
    ),
    (
        "the organisation is changed under an active contract from your superior, and you hold none",
        "改动组织须有上级给你的有效合同，而你没有",
    ),
    ("there is no role `{}`", "没有角色 `{1}`"),
    ("there is an agent `{}` already", "已有智能体 `{1}`"),
    (
        "`{}` is no name for an agent: it has at most 64 small letters, digits and `_`",
        "`{1}` 不能作智能体的名称：最多 64 个小写字母、数字和 `_`",
    ),
    (
        "`{}` is not beneath you: nobody changes their own place, or one above",
        "`{1}` 不在你之下：谁都不能改动自己或上级的位置",
    ),
    ("`{}` is empty", "`{1}` 为空"),
    ("`{}` has at most {} characters", "`{1}` 最多 {2} 个字符"),
    ("`{}` is one line, without control characters", "`{1}` 须为一行，且不含控制字符"),
    ("`{}` has a NUL character", "`{1}` 含有 NUL 字符"),
    ("`{}` has control characters", "`{1}` 含有控制字符"),
    ("`{}` is a text", "`{1}` 须为文本"),
    ("`{}` is true or false", "`{1}` 须为 true 或 false"),
    ("`{}` is a text, or at most {} of them", "`{1}` 须为文本，或最多 {2} 条文本"),
    ("`{}` is a time (RFC 3339) or a date", "`{1}` 须为时间（RFC 3339）或日期"),
    ("there are at most {} attachments", "最多 {1} 个附件"),
    ("an attachment's path is empty or too long", "附件路径为空或过长"),
    ("an attachment's description is too long", "附件说明过长"),
    ("there is no mail `{}` of yours to reply to", "没有可供你回复的邮件 `{1}`"),
    ("mail of type `{}` has no field `{}`", "`{1}` 类型的邮件没有字段 `{2}`"),
    ("the fields have at most {} bytes together", "各字段合计最多 {1} 字节"),
    ("`{}`: `{}` is not a path", "`{1}`：`{2}` 不是路径"),
    ("`{}`: `{}` is not a path beneath the workspace", "`{1}`：`{2}` 不是工作区内的路径"),
    ("`{}`: `{}` is all of the workspace", "`{1}`：`{2}` 是整个工作区"),
    ("`{}`: `{}` is the place of role `{}`", "`{1}`：`{2}` 是角色 `{3}` 的位置"),
    // What became of a layer, or of a step.
    ("had nothing against it", "没有异议"),
    ("an agent that is not there has no role", "不存在的智能体没有角色"),
    ("nothing is known of a tool that is not there", "对不存在的工具一无所知"),
    ("the arguments were left aside", "未考虑参数"),
    ("only arguments that fit the tool are looked at", "只检查符合工具格式的参数"),
    (
        "budgets had nothing against it; how often it is called is counted as it runs",
        "预算没有异议；调用频率在执行时计算",
    ),
    ("the step before it had rejected the mail", "邮件在前一步已被拒绝"),
    ("what the mail said is not kept", "邮件内容没有留存"),
    // What would let something through.
    ("the same again: the rules in force allow it", "重做一次即可：现行规则允许"),
    ("arguments that fit what `{}` takes", "改用符合 `{1}` 格式的参数"),
    ("add the tool `{}`", "添加工具 `{1}`"),
    ("something other than `deny` in", "把 `deny` 改为其他规定："),
    ("another rule in", "修改这条规则："),
    ("add the agent `{}`", "添加智能体 `{1}`"),
    ("make it active again:", "重新启用："),
    (
        "a new run that is given `{}`: what a run was given is fixed when it starts",
        "另起一次获得 `{1}` 委托的运行：委托在运行开始时即已固定",
    ),
    (
        "a new run that is given `{}`: what this one has is fixed:",
        "另起一次获得 `{1}` 委托的运行：本次运行的委托已固定：",
    ),
    (
        "a new run that is given `{}`, all else put right: what this one has is fixed:",
        "其余障碍消除后，另起一次获得 `{1}` 委托的运行：本次运行的委托已固定：",
    ),
    (
        "a new run that is given `{}`: `{}` fixed what this one has as it started:",
        "另起一次获得 `{1}` 委托的运行：本次运行的委托由 `{2}` 在其开始时固定：",
    ),
    (
        "a new run that is given `{}`, all else put right: `{}` fixed what this one has as it started:",
        "其余障碍消除后，另起一次获得 `{1}` 委托的运行：本次运行的委托由 `{2}` 在其开始时固定：",
    ),
    (
        "before it, one in place of `{}` that is given `{}`: `{}` fixed what that has as it started:",
        "在此之前，先另起一次获得 `{2}` 委托的运行来代替 `{1}`：后者的委托由 `{3}` 在其开始时固定：",
    ),
    (
        "a contract whose workspace or branch covers it, given to `{}`",
        "给 `{1}` 一份工作区或分支涵盖它的合同",
    ),
    ("an active contract from a superior of `{}`", "`{1}` 的上级给它一份有效合同"),
    ("other arguments", "改用其他参数"),
    ("another path: this one is denied to everyone", "改用其他路径：此路径对所有人禁止"),
    ("a path within", "改用此范围内的路径："),
    ("a branch within", "改用此范围内的分支："),
    ("another branch: this one is protected", "改用其他分支：此分支受保护"),
    ("other arguments, that this rule lets through:", "改用这条规则允许的参数："),
    (
        "a live approval of this deployment, sent to `{}` by {}",
        "由 {2} 发给 `{1}` 的、仍有效的本次部署批准",
    ),
    ("a minute later: it is counted anew", "一分钟后：次数会重新计算"),
    ("a new run, which has a budget of its own", "另起一次运行，它有自己的预算"),
    ("a higher limit in", "提高此处的上限："),
    (
        "a run that is less deep: goals are handed on only so far",
        "由层级更浅的运行来做：目标的转交层数有限",
    ),
    ("write to {}: their role has `{}`", "写信给 {1}：其角色有 `{2}`"),
    ("raise it with `escalate`: it goes to `{}`", "用 `escalate` 上报：会送达 `{1}`"),
    ("add `{}` to", "把 `{1}` 加入"),
    ("take what matches `{}` out of", "移除与 `{1}` 相符的条目："),
    ("someone approves it", "有人批准"),
    ("a person approves it, each time", "每次都由真人批准"),
    (
        "without the attachment, or with one that its sender may read",
        "去掉附件，或改附发件人可读取的文件",
    ),
    ("the same with its fields put right", "改正字段后重发"),
    ("the same about a contract that its sender is party to", "改为关于发件人所属的合同"),
    ("send `{}` to {}", "把 `{1}` 发给 {2}"),
    ("send `{}` another type: {}", "改发其他类型给 `{1}`：{2}"),
    ("add the mail type `{}`", "添加邮件类型 `{1}`"),
    ("another direction in", "改变此处的方向："),
    (
        "a contract that allows it across departments, given to `{}` by a superior",
        "由上级给 `{1}` 一份允许跨部门的合同",
    ),
    ("let role `{}` report to `{}` in", "让角色 `{1}` 向 `{2}` 汇报："),
    ("an operator", "管理员"),
    ("agent `{}`, with a contract of {}", "智能体 `{1}`（凭 {2} 给它的合同）"),
    // What an agent is told of a call that nobody let through.
    ("User denied the request.", "人员拒绝了该请求。"),
    (
        "Nobody answered the request in time, so it was not carried out.",
        "无人及时答复该请求，因此没有执行。",
    ),
    (
        "`{}` had started when the server stopped; whether it took effect is unknown",
        "服务器停止时 `{1}` 已开始；是否生效未知",
    ),
    // Why a run failed; what stands in “ ” was said by a provider.
    ("agent `{}` is not at work any more", "智能体 `{1}` 已不在岗"),
    ("model `{}` is unavailable after {} tries: {}", "模型 `{1}` 尝试 {2} 次后仍不可用：“{3}”"),
    ("model `{}` refused the request: {}", "模型 `{1}` 拒绝了请求：“{2}”"),
    (
        "model `{}` answered with something that cannot be read: {}",
        "模型 `{1}` 的应答无法读取：“{2}”",
    ),
    (
        "gave up after {} attempts that ended at the same place: the worker was lost or failed \
         each time",
        "在同一处尝试 {1} 次均告中断，已放弃：每次都失去了工作进程或执行失败",
    ),
    // Why a memory was found.
    ("stands beside what matches", "与相符的内容相邻"),
    ("is near in meaning", "含义相近"),
    ("matches {}", "与 {1} 相符"),
    // Where the chain of the audit is broken.
    ("entry {} is missing", "缺少记录 {1}"),
    ("entry {} does not belong to the chain", "记录 {1} 不属于此链条"),
    (
        "entry {} was changed, or the one before it: its hash is not the one that follows",
        "记录 {1} 或其前一条被改动：其哈希与后一条所记不符",
    ),
    (
        "the columns beside entry {} were changed: they are not what it says",
        "记录 {1} 旁的列被改动：与记录内容不符",
    ),
    ("entry {} cannot be read", "无法读取记录 {1}"),
    ("the head is not that of entry {}, the last one", "链头与最后一条记录 {1} 不符"),
    ("entry {} is not the one that the anchor was taken of", "记录 {1} 与留存锚点时的不是同一条"),
    ("the anchor was taken of entry {}, which is gone", "锚点所对应的记录 {1} 已不存在"),
    // Why somebody is not let in.
    (
        "this browser was not sent to the identity provider: begin again",
        "此浏览器并未前往身份提供方：请重新开始",
    ),
    ("this answer belongs to another browser: begin again", "此应答属于另一个浏览器：请重新开始"),
    (
        "this answer was used before, or came too late: begin again",
        "此应答已被使用过，或来得太晚：请重新开始",
    ),
    ("the claim `{}` is not a list of names", "声明 `{1}` 不是名称列表"),
    (
        "your groups at the identity provider are not let in here",
        "你在身份提供方所属的组不允许进入",
    ),
    (
        "the identity provider does not say `{}` or `{}`",
        "身份提供方既没有说明 `{1}`，也没有说明 `{2}`",
    ),
    ("the identity provider does not say `{}`", "身份提供方没有说明 `{1}`"),
    (
        "your name at the identity provider cannot be used here: names have letters, digits and \
         `. _ - + @`, and begin with a letter or a digit",
        "你在身份提供方的名字不能在此使用：名字由字母、数字和 `. _ - + @` 组成，并以字母或数字开头",
    ),
    (
        "`{}` has 1 to {} characters, and no blanks around them",
        "`{1}` 须为 1 到 {2} 个字符，首尾不能有空白",
    ),
    (
        "`{}` is read as a person's: it is not `system` or `board`, does not begin with `agent:` \
         or `service:`, and has no characters that are not drawn",
        "`{1}` 用作人名：不能是 `system` 或 `board`，不能以 `agent:` 或 `service:` 开头，也不能含有不可见字符",
    ),
    ("the arguments are not JSON: {}", "参数不是有效的 JSON：“{1}”"),
    ("the identity provider cannot be used just now: {}", "身份提供方暂时无法使用：“{1}”"),
    ("the identity provider refused: {}", "身份提供方拒绝：“{1}”"),
    ("what the identity provider said is not to be believed: {}", "身份提供方的应答不可信：“{1}”"),
    // Which layer said so.
    ("identity", "身份"),
    ("tool", "工具"),
    ("delegation", "委托"),
    ("role", "角色"),
    ("risk", "风险"),
    ("capability", "能力"),
    ("arguments", "参数"),
    ("limits", "限额"),
];

/// A recorded sentence as the reader reads it.
pub fn sentence(detail: &str, w: &Words) -> String {
    let known = w.is_chinese().then(|| in_chinese(SENTENCES, detail)).flatten();
    known.unwrap_or_else(|| detail.to_owned())
}

/// What an agent was told, ready for a page: as a sentence where it is one of the record's, and
/// quoted where it is a tool's or a program's.
pub fn told(text: &str, w: &Words) -> String {
    match w.is_chinese().then(|| in_chinese(SENTENCES, text)) {
        None => ticked(text),
        Some(Some(chinese)) => ticked(&chinese),
        Some(None) => format!("<q lang=\"\">{}</q>", shown(text)),
    }
}

#[cfg(test)]
mod tests {
    use chancery_domain::org::Org;
    use chancery_domain::policy::{Bounds, Fitness, Policy, Question};

    use super::*;
    use crate::console::pattern::sources::{between, english, is_chinese, texts, told as filled};
    use crate::console::words::{EN, ZH};
    use crate::organisation::{Files, Mistakes, load};

    const ROLES: &str = "
roles:
  worker: {prompt: x, tools: [note, pay, wire, burn], deny_tools: [wire]}
  free: {prompt: x}
agents:
  worker: {role: worker}
  free: {role: free}
  gone: {role: free, active: false}
users:
  mei: {denied_tools: [note]}
  kim: {allowed_tools: [pay]}
";
    const TOOLS: &str = "
commands:
  note: {description: x, command: [/bin/true], risk: low}
  pay: {description: x, command: [/bin/true], risk: high, capabilities: [payment]}
  wire: {description: x, command: [/bin/true], risk: medium, capabilities: [transfer]}
  burn: {description: x, command: [/bin/true], capabilities: [arson]}
  other: {description: x, command: [/bin/true], risk: high}
";
    const POLICY: &str = "
risk: {low: allow, medium: require_approval, high: require_human}
capabilities: {payment: require_human, transfer: require_approval, arson: deny}
tools: {note: allow, burn: require_approval, pay: require_human, wire: deny}
";

    #[test]
    fn every_sentence_of_the_policy_has_its_chinese() {
        let files = [("roles.yaml", ROLES), ("tools.yaml", TOOLS), ("policy.yaml", POLICY)];
        let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let mut mistakes = Mistakes::default();
        let loaded = load(Files::new(files, &mut mistakes), mistakes).unwrap();
        let org: Org = loaded.org.clone();
        let policy = Policy::new(org.into(), loaded.facts.iter().cloned());
        let narrow = Bounds {
            allowed_tools: Some(vec!["note".to_owned()]),
            denied_tools: vec!["pay".to_owned()],
        };
        let narrow = policy.delegation(&narrow);
        let misfit = Fitness::BadArguments("`to` is missing".to_owned());
        let mut seen = std::collections::BTreeSet::new();
        for agent in ["worker", "free", "gone", "nobody"] {
            for tool in ["note", "pay", "wire", "burn", "other"] {
                for user in ["lin", "mei", "kim"] {
                    for fitness in [&Fitness::Fits, &Fitness::UnknownTool, &misfit] {
                        for delegated in [None, Some(&narrow)] {
                            let question = Question {
                                agent,
                                user,
                                tool,
                                delegated,
                                fitness,
                                arguments: &[],
                                limits: &[],
                            };
                            let table = policy.rule(question).table();
                            seen.extend(table.into_iter().map(|it| it.detail));
                        }
                    }
                }
            }
        }
        assert!(seen.len() > 30, "{seen:?}");
        for detail in &seen {
            assert!(is_chinese(&sentence(detail, &ZH)), "{detail}");
            assert_eq!(sentence(detail, &EN), *detail);
        }
    }

    /// Where sentences are made that people read: the text of the files themselves, so that one
    /// which is added there is missed here.
    const SOURCES: &[&str] = &[
        include_str!("../../../domain/src/policy/explain.rs"),
        include_str!("../../../domain/src/policy/file_scope.rs"),
        include_str!("../../../domain/src/policy/branch.rs"),
        include_str!("../../../domain/src/policy/protected.rs"),
        include_str!("../../../domain/src/chart.rs"),
        include_str!("../../../domain/src/policy/limits.rs"),
        include_str!("../../../domain/src/policy/looked.rs"),
        include_str!("../../../domain/src/ways.rs"),
        include_str!("../../../domain/src/ways/change.rs"),
        include_str!("../../../domain/src/ways/given.rs"),
        include_str!("../../../domain/src/ways/mail.rs"),
        include_str!("../../../domain/src/mail.rs"),
        include_str!("../../../domain/src/contract/terms.rs"),
    ];
    /// Names of rules, and what is a part of sentences that are tried whole elsewhere.
    const NO_SENTENCES: &[&str] = &[
        "{rule} ({place})",
        "{list}: [{}]",
        " ({it})",
        "of the run's delegation",
        "of user `{user}`",
        "someone must approve it",
        "a person must approve it",
        "attachment {reason}",
        "protected `{entry}`",
        "is not a path",
        "is not a path beneath the workspace",
        "is all of the workspace",
        "is the place of role `{}`",
    ];

    /// What may stand in a gap of a sentence.
    fn words(text: &str, gap: &str) -> Vec<String> {
        let words: &[&str] = match gap {
            "whose" => &["of the run's delegation", "of user `lin`"],
            "does" => &["read", "write"],
            "what" => &["tokens", "steps"],
            "goes" => &["up", "down", "across"],
            "risk" => &["low", "medium", "high"],
            "why" => &["is not a path", "is all of the workspace"],
            // What has no name in it is a name, a risk or a ruling.
            "" if text.ends_with("{} risk") => &["low", "medium", "high"],
            "" if text.ends_with(": {}") => {
                &["allowed", "someone must approve it", "a person must approve it", "denied"]
            }
            _ => &["name"],
        };
        words.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn no_sentence_that_is_written_anywhere_is_left_in_english() {
        let mut count = 0;
        let said = |it: &String| !NO_SENTENCES.contains(&&**it);
        for text in SOURCES.iter().flat_map(|it| texts(it)).filter(said) {
            for sentence in filled(&text, |gap| words(&text, gap)) {
                let read = super::sentence(&sentence, &ZH);
                assert!(is_chinese(&read), "`{text}` has no Chinese: {sentence}");
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
        for part in &NO_SENTENCES[9..] {
            let whole = format!("`workspace_scope`: `x` {}", part.replace("{}", "worker"));
            assert!(is_chinese(&sentence(&whole, &ZH)), "{whole}");
        }
    }

    /// What else of the record is told on pages: where it is put in words, from and to.
    const ELSEWHERE: &[(&str, &str, &str)] = &[
        (include_str!("../../../store/src/audit/verify.rs"), "for Bad {", "\n}\n"),
        (include_str!("../../../store/src/memory/search.rs"), "pub fn why(", "\n    }\n"),
        (include_str!("../../../runtime/src/model.rs"), "pub enum ModelError {", "\n}\n"),
        (include_str!("../../../runtime/src/gate.rs"), "pub fn refusal_result(", "\n}\n"),
        (include_str!("../../../runtime/src/runner.rs"), "fn give_up(", "tracing::"),
        (include_str!("../../../runtime/src/issuer.rs"), "pub enum IssuerError {", "\n}\n"),
        (include_str!("vouched.rs"), "", "#[cfg(test)]"),
        (include_str!("oidc.rs"), "async fn received(", "\n}\n"),
        (include_str!("../extract.rs"), "pub fn check_name(", "/// A name that a list"),
    ];

    #[test]
    fn nothing_else_that_is_told_of_the_record_is_left_in_english() {
        let mut left = Vec::new();
        let mut count = 0;
        for (source, from, to) in ELSEWHERE {
            let texts = texts(&between(&format!("{source}{to}"), from, to));
            // What two names are joined with.
            for text in texts.iter().filter(|it| *it != "` or `") {
                for sentence in filled(text, |_| vec!["名".to_owned()]) {
                    let read = in_chinese(SENTENCES, &sentence);
                    let fine = |it: &String| is_chinese(it) && english(it).is_empty();
                    if !read.as_ref().is_some_and(fine) {
                        left.push(format!("{sentence}: {read:?}"));
                    }
                    count += 1;
                }
            }
        }
        assert!(left.is_empty(), "{}", left.join("\n"));
        assert!(count > 20, "{count}");
    }

    #[test]
    fn what_other_layers_and_rules_say_has_its_chinese() {
        use chancery_domain::escalation::Refusal;
        use chancery_domain::id::GroupId;
        let group = || GroupId::from("grp_x");
        let depth = [
            Refusal::UnknownGroup(group()),
            Refusal::NobodyAtWork(group()),
            Refusal::AboveAlready(group()),
            Refusal::TooDeep(5),
        ]
        .map(|it| it.reason().detail);
        let said = [
            "`pay` is not what it was when this was granted",
            "the rule `no-evil` forbids it",
            "the rule `no-evil` wants it asked",
            "the rule names a tool that is not there yet, and so cannot be checked",
            "the rule could not be evaluated: it divides by `0`",
            "the rules cannot read the arguments of `pay`: too deep",
            "attachment `a.md` is outside of what role `worker` may read",
            "attachment `/a.md` is no path beneath the workspace",
            "attachment `.env` is denied to everyone: it may hold a secret, or run by itself",
            "nothing goes to `production` without an approval: there is no live \
             `deployment_approval` to you that names `production` and `shop/web:1`",
        ];
        for detail in depth.iter().map(String::as_str).chain(said) {
            assert!(is_chinese(&sentence(detail, &ZH)), "{detail}");
        }
    }

    #[test]
    fn a_name_is_put_where_it_belongs_and_cannot_end_its_quotation() {
        let said = |text: &str| sentence(text, &ZH);
        assert_eq!(
            said("`pay` matches `p*` in the denied tools of role `clerk`"),
            "`pay` 与角色 `clerk` 被拒绝的工具 `p*` 相符"
        );
        assert_eq!(said("`x` is of low risk"), "`x` 为低风险");
        let forged = "there is no tool `a` is within the delegation, `b`";
        assert_eq!(said(forged), forged);
        assert_eq!(said("what an operator wrote"), "what an operator wrote");
    }
}
