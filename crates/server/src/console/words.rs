//! Every word of the console, in English and in Chinese. The compiler sees that neither language
//! lacks one; what agents and files say is never translated.
//!
//! Long because it is a table.

use jiff::Timestamp;

use super::chat::Presence;

macro_rules! words {
    ($($name:ident: $en:literal, $zh:literal;)*) => {
        /// The words in one language.
        #[derive(Debug)]
        pub struct Words {
            $(pub $name: &'static str,)*
        }

        pub const EN: Words = Words { $($name: $en,)* };
        pub const ZH: Words = Words { $($name: $zh,)* };

        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($name), $en, $zh),)*];
    };
}

words! {
    // Around every page.
    skip: "Skip to the page", "跳到正文";
    navigation: "Navigation", "导航";
    inbox: "Inbox", "待办";
    chat: "Chat", "对话";
    runs: "Runs", "运行";
    mail: "Mail", "邮件";
    organisation: "Organisation", "组织";
    memory: "Memory", "记忆";
    audit: "Audit", "审计";
    rules: "Rules", "规则";
    settings: "Settings", "设置";
    language: "Language", "语言";
    theme: "Appearance", "外观";
    theme_system: "System", "跟随系统";
    theme_light: "Light", "浅色";
    theme_dark: "Dark", "深色";
    sign_out: "Sign out", "退出";
    live: "live", "实时";
    live_lost: "not connected, trying again", "连接中断，正在重试";
    no_script: "Without scripts this page does not update itself: load it again to see what is new.", "未启用脚本，页面不会自动更新：请刷新以查看最新内容。";
    operator: "operator", "管理员";
    keys_inbox: "j k move · Enter open · x select · on a call: a approve once · d deny · e edit · r ask · w why · t trace · + more time · ? all keys", "j k 移动 · Enter 打开 · x 选中 · 在调用上：a 批准一次 · d 拒绝 · e 编辑 · r 询问 · w 原因 · t 轨迹 · + 延长 · ? 全部快捷键";
    keys_focus: "Keys work only while the list or a call has the focus.", "仅当列表或调用获得焦点时，按键才有效。";
    something_wrong: "That did not work", "操作未成功";
    back: "Back", "返回";
    typed: "What you had typed, to copy", "你刚才输入的内容（可复制）";
    go_home: "To the start page", "回到首页";
    going_on: "Going on …", "正在跳转……";
    go_on: "Go on", "继续";
    older: "Older", "更早";
    filter: "Filter", "筛选";
    all: "all", "全部";
    none: "none", "无";
    ago: "{t} ago", "{t}前";
    unit_d: "d", "天";
    unit_h: "h", "小时";
    unit_m: "min", "分钟";
    unit_s: "s", "秒";
    unit_ms: "ms", "毫秒";
    now: "a moment", "片刻";

    // Keys.
    keys_title: "Keys", "快捷键";
    keys_lead: "Letters work only where the focus is, never while you type, and not within half a second of a card's coming or moving. A call of high risk is never one key.", "字母键只在焦点所在处有效，输入时从不生效；卡片出现或移动后半秒内也无效。高风险调用绝不会由一个键决定。";
    keys_everywhere: "Everywhere", "任何位置";
    keys_in_list: "In a list", "在列表中";
    keys_on_call: "On a call that asks", "在等待决定的调用上";
    keys_in_trace: "In a trace", "在轨迹中";
    keys_in_matrix: "In a matrix", "在矩阵中";
    keys_in_chat: "In a talk", "在对话中";
    keys_switch: "Single letters", "单字母快捷键";
    keys_switch_note: "Who speaks to their machine, or types by accident, turns them off. Ctrl K, Enter and Esc stay.", "使用语音输入或容易误触的人可以将其关闭。Ctrl K、Enter 和 Esc 仍然有效。";
    keys_on: "on", "开启";
    keys_off: "off", "关闭";
    key_help: "these keys", "显示快捷键";
    key_jump: "jump to a page, a run, an agent, a question", "跳转到页面、运行、智能体或待决事项";
    key_escape: "close what is open", "关闭已打开的内容";
    key_next: "next", "下一项";
    key_before: "the one before", "上一项";
    key_select: "select, to approve several at once", "选中，以便一并批准";
    key_calls: "to the next call, to the one before", "下一个调用、上一个调用";
    key_approve: "approve once, where the risk is low or medium", "批准一次（仅限低、中风险）";
    key_approve_high: "high risk: open the second step", "高风险：打开第二步";
    key_high_note: "High risk: Shift A opens the second step.", "高风险：按 Shift A 打开第二步。";
    key_deny: "deny, with a reason", "拒绝并说明理由";
    key_edit: "edit the arguments", "编辑参数";
    key_ask: "ask the agent; nothing is decided", "询问智能体（不作决定）";
    key_why: "why it is asked", "为何询问";
    key_trace: "the run's trace", "运行轨迹";
    key_extend: "give it more time", "延长时限";
    key_lines: "to the next line, to the one before", "下一行、上一行";
    key_open_line: "open a line, close it", "展开、收起一行";
    key_trouble: "the line before, or after, that was refused, waits or failed", "上一个、下一个被拒绝、等待或失败的行";
    key_cells: "the cell beside, above or below", "移到相邻的单元格";
    key_row_ends: "the first, or the last, cell of the row", "本行的第一个、最后一个单元格";
    key_first_cell: "the first cell of all", "整个矩阵的第一个单元格";
    key_last_cell: "the last cell of all", "整个矩阵的最后一个单元格";
    key_cell_why: "why the cell says so", "查看该单元格的原因";
    key_follow: "follow the end", "跟随末尾";
    key_newline: "a new line", "换行";
    key_last_card: "to the last card", "到最后一张卡片";
    key_composer: "to your own words", "到输入框";
    key_room: "to the room", "到小组房间";
    jump: "Jump", "跳转";
    jump_to: "Jump to", "跳转到";
    jump_page: "page", "页面";
    jump_nothing: "Nothing of that name.", "没有找到。";
    close: "Close", "关闭";

    // The door.
    sign_in: "Sign in", "登录";
    sign_in_lead: "Show a person's token. Make one on the server's machine:", "请出示个人令牌。可在服务器上创建：";
    token: "Token", "令牌";
    sign_in_refused: "There is no such token of a person, or it was taken back.", "没有这样的个人令牌，或已被撤销。";
    sign_in_with: "Sign in with", "登录方式：";
    sign_in_or: "Or with a token", "或使用令牌";
    sign_in_failed: "You are not signed in", "登录未成功";
    sign_in_failed_id: "Whoever runs this server finds it in the audit as", "服务器管理者可在审计中查到：";
    lost_title: "Your visit has ended", "登录已结束";
    lost_lead: "Nothing was sent. Sign in again, and you find what you had typed.", "尚未发送任何内容。重新登录后可找回你刚才输入的内容。";
    lost_too_long: "Nothing was sent, and it was too long to be given back here: your browser's Back leads to it.", "尚未发送任何内容；内容过长，无法在此找回：请使用浏览器的“后退”。";
    lost_stays: "Nothing was sent. Sign in here; what you had typed stays where it is.", "尚未发送任何内容。请在此登录；你输入的内容会保留在原处。";
    lost_again: "You are signed in again. Nothing was sent: send it once more if it still holds.", "你已重新登录。尚未发送任何内容：确认无误后请再次发送。";
    lost_elsewhere: "I have signed in in another tab: go on", "我已在其他标签页登录，继续";
    given_title: "You are signed in again", "你已重新登录";
    given_lead: "Nothing was sent. This is what you had typed; send it if it still holds.", "尚未发送任何内容。以下是你刚才输入的内容；确认无误后再发送。";
    given_copy: "Nothing was sent. Go back and decide anew; this is what you had typed, to copy.", "尚未发送任何内容。请返回后重新决定；以下是你刚才输入的内容（可复制）。";
    given_send: "Send it now", "现在发送";
    setup_title: "First visit", "首次访问";
    setup_lead: "This link lets one person in, as an operator. Nobody else can use it after you.", "此链接只允许一个人以管理员身份进入。你使用之后，其他人无法再用。";
    setup_name: "Your name, as it stands in the organisation and in the audit", "你的名字（将用于组织与审计记录）";
    setup_enter: "Enter", "进入";
    setup_over: "This link is used up or too old.", "此链接已被使用或已过期。";
    setup_over_next: "Make a token on the server's machine and sign in with it:", "请在服务器上创建令牌并用它登录：";
    tagline: "Agents work here under rules that the system holds.", "智能体在此工作，规则由系统强制执行。";

    // The first visit.
    welcome: "First steps", "初始设置";
    welcome_person: "You", "你";
    welcome_person_note: "is signed in as an operator. Others get tokens in the settings.", "已以管理员身份登录。其他人的令牌可在设置中创建。";
    welcome_org: "An organisation", "组织";
    welcome_org_note: "A small team asks before it writes anything down; the company has nine roles and a chain of command. Either can be changed at any time.", "小团队在写入任何内容之前都会询问；公司有九个角色和指挥链。两者都可随时更改。";
    starter_small_team: "A small team", "小团队";
    draft_stale: "The text has changed since it was checked: check it again.", "文本在检查之后已改动：请重新检查。";
    starter_replace: "Take the place of the organisation in force. The version before is kept: `chancery org revert` brings it back.", "替换现行组织。之前的版本会保留：可用 `chancery org revert` 恢复。";
    starter_untold: "tick that the organisation in force is to be replaced", "请勾选以确认替换现行组织";
    starter_company: "The built-in company", "内置公司";
    welcome_model: "A model", "模型";
    welcome_model_test: "Look at the models and try them", "查看并测试模型";
    welcome_practise: "A first answer", "第一次决定";
    welcome_practise_note: "Your agent will want to write a note, and asks. It is of low risk, and good for practice.", "你的智能体会想写一条便签，并向你询问。风险很低，适合练习。";
    welcome_practise_text: "Write a note that says: the rules hold.", "写一条便签：规则有效。";
    welcome_practise_none: "The organisation in force asks nothing before a note. Choose the small team to practise.", "现行组织写便签前不会询问。选择小团队即可练习。";
    welcome_practised: "A run has been made.", "已有运行记录。";
    welcome_over: "That is enough", "完成";

    // The inbox.
    needs_you: "Needs you", "待你决定";
    decided_tab: "Decided", "已决定";
    escalated_tab: "Escalated", "已上报";
    expired_tab: "Expired", "已过期";
    nothing_escalated: "Nothing was put to others.", "没有上报的事项。";
    nothing_expired: "Nothing has expired.", "没有过期的事项。";
    again: "Tell the agent to ask again", "让智能体重新询问";
    again_note: "Expired is not denied. The agent may ask again; nothing is approved by this.", "过期不等于拒绝。智能体可以重新询问；此操作不会批准任何调用。";
    again_text: "Your question about `{tool}` expired before anybody answered. If it is still needed, ask again.", "关于 `{tool}` 的询问在有人答复之前已过期。如果仍有需要，请重新询问。";
    again_not_expired: "this question has not expired", "该询问尚未过期";
    again_over: "its run has ended and belongs to no thread: begin it anew", "其运行已结束且不属于任何对话：请重新开始";
    bulk_open: "Answer the selected …", "答复所选……";
    bulk_pick: "select {tool}", "选择 {tool}";
    bulk_title: "Several at once", "一并答复";
    bulk_lead: "{n} calls of one tool and one agent. Read each; nothing is decided yet.", "同一智能体、同一工具的 {n} 个调用。请逐一阅读；尚未作出决定。";
    bulk_approve: "Approve these {n}", "批准这 {n} 项";
    bulk_deny: "Deny these {n}", "拒绝这 {n} 项";
    bulk_unlike: "only calls of one tool and one agent, of low or medium risk, are answered together", "只有同一智能体、同一工具且为低、中风险的调用才能一并答复";
    bulk_late: "one of them was answered meanwhile: look again", "其中一项已有答复：请重新查看";
    nothing_waits: "Nothing waits for you.", "没有等待你决定的事项。";
    nothing_waits_next: "When an agent needs a person's word, it stands here.", "当智能体需要人来决定时，会显示在这里。";
    nothing_decided: "Nothing was decided yet.", "尚无决定。";
    to_chat: "Talk to an agent", "与智能体对话";
    new_items: "{n} new", "{n} 项新内容";
    questions: "What waits", "等待事项";
    plus_calls: "+{n} more", "另有 {n} 项";
    for_person: "for {name}", "为 {name}";
    expires_in: "{t} left", "剩余 {t}";
    no_expiry: "does not expire", "不会过期";
    escalated: "others were told", "已通知他人";
    asked_by: "Asked by", "请求者";
    batch: "Batch", "批次";
    run: "Run", "运行";
    waited: "waiting {t}", "已等待 {t}";
    open_of: "{open} of {all} undecided", "{all} 项中 {open} 项未决定";
    all_decided: "All decided", "全部已决定";
    nothing_runs: "Nothing in this batch runs until every call is decided.", "在所有调用都有决定之前，本批次不会执行任何调用。";
    batch_goes_on: "Every call is decided: the batch goes on.", "所有调用均已决定：批次继续执行。";
    batch_expired: "What nobody answered in time did not run, and the agent was told.", "无人及时答复的调用没有执行，智能体已得知。";
    allowed_waits: "allowed by the rules; runs with the batch", "规则允许；随批次执行";
    refused_by_policy: "refused by the rules; the agent is told why", "规则拒绝；智能体会得知原因";
    risk_high: "HIGH", "高";
    risk_medium: "MEDIUM", "中";
    risk_low: "LOW", "低";
    risk_none: "UNKNOWN", "未知";
    state_pending: "undecided", "未决定";
    state_granted: "approved", "已批准";
    state_denied: "denied", "已拒绝";
    state_expired: "expired", "已过期";
    state_cancelled: "withdrawn", "已撤回";
    state_allowed: "allowed", "已允许";
    state_refused: "refused", "被拒绝";
    exact_call: "Exact call, drawn by the server", "确切的调用（由服务器绘制）";
    no_arguments: "no arguments", "无参数";
    empty_text: "(empty)", "（空）";
    granted_as: "Approved with other arguments", "以修改后的参数批准";
    digest_wrong: "THE DIGEST IS NOT OF THESE ARGUMENTS. Do not approve this.", "摘要与参数不符。请勿批准。";
    lines_folded: "{n} lines: open to read all", "共 {n} 行：展开查看全部";
    characters_folded: "{n} characters: open to read all", "共 {n} 个字符：展开查看全部";
    difference: "What changes", "改动";
    difference_cut: "The difference is longer than is shown; the arguments above are whole.", "改动过长未全部显示；上方参数是完整的。";
    why_asked: "Why it is asked", "为何询问";
    capable_of: "Capable of", "涉及能力";
    agent_says: "The agent says", "智能体的说法";
    agent_wrote: "written by the agent; no fact about the call", "由智能体书写，不是关于调用的事实";
    before: "Before", "以往";
    before_counts: "{n} asked in 30 days: {g} approved, {d} denied, {x} expired", "30 天内询问 {n} 次：批准 {g}，拒绝 {d}，过期 {x}";
    never_before: "never asked in 30 days", "30 天内从未询问";
    fact_command: "Command", "命令";
    fact_signature: "Signature", "命令特征";
    fact_what: "What it is", "说明";
    fact_touches: "Touches", "影响";
    fact_path: "Path", "路径";
    fact_server: "Server", "服务器";
    fact_server_tool: "Its tool", "其工具";
    fact_hints: "Hints", "提示";
    no_hints: "none: assume the worst", "无：按最坏情况看待";
    servers_word: "the server's own word", "服务器自述";
    changes_nothing: "changes nothing", "不改变任何东西";
    changes_things: "changes things", "会改变东西";
    may_leave: "may leave this machine", "可能离开本机";
    stays_here: "is not meant to leave this machine", "不应离开本机";
    approve_once: "Approve once", "批准一次";
    approve_note: "runs when the batch is complete", "批次完整后执行";
    deny_open: "Deny …", "拒绝……";
    deny: "Deny", "拒绝";
    deny_note: "The agent reads your reason as the result of the call.", "智能体会把你的理由当作调用结果读到。";
    reason: "Reason", "理由";
    reason_optional: "Reason (may be left out)", "理由（可不填）";
    reason_wrong_target: "Wrong target", "目标不对";
    reason_not_now: "Not now", "现在不行";
    reason_ask_first: "Ask me first", "先问我";
    edit_open: "Edit …", "编辑……";
    edit_arguments: "Arguments, as JSON", "参数（JSON）";
    edit_check: "Show what changes", "查看改动";
    edit_title: "An edited call", "修改后的调用";
    edit_lead: "Nothing is decided yet. This is what would run instead.", "尚未决定。将改为执行如下内容。";
    edit_same: "Nothing is different.", "没有任何不同。";
    edit_refused: "The rules refuse the edited call.", "规则拒绝修改后的调用。";
    edit_fine: "The rules do not stand against it.", "规则不反对。";
    edit_approve: "Approve the edited call", "批准修改后的调用";
    high_confirm_edited: "I have read what would run instead", "我已阅读将改为执行的内容";
    edit_again: "Change it again", "再次修改";
    high_open: "Decide this call …", "决定此调用……";
    high_lead: "High risk: read the exact call above, give a reason, then approve.", "高风险：请阅读上方确切调用，填写理由，然后批准。";
    high_confirm: "I have read the exact call", "我已阅读确切的调用";
    high_approve: "Approve this call", "批准此调用";
    high_needs_reason: "a call of high risk is approved with a reason and a second step", "高风险调用须填写理由并再次确认";
    not_what_was_shown: "this is not the call that was on the page: look at it again", "这不是页面上显示的调用：请重新查看";
    ask: "Ask the agent …", "询问智能体……";
    ask_text: "What you want to know", "想了解什么";
    ask_note: "It answers here, in its own words, without any tool. Nothing is decided, and nothing runs.", "它会在此以自己的话回答，不使用任何工具。不作任何决定，也不执行任何操作。";
    ask_do: "Ask", "询问";
    asked_agent: "{name} asked the agent", "{name} 询问了智能体";
    no_explanation: "No answer has come yet. It may be asked again.", "尚无回答，可再次询问。";
    extend: "More time", "延长时限";
    extend_note: "It stands for as long again as it had at first. Nothing is decided.", "再延长与最初相同的时间。不作任何决定。";
    remember_open: "Approve and remember …", "批准并记住……";
    remember_scope: "For", "适用于";
    remember_run: "this run", "本次运行";
    remember_agent: "this agent", "该智能体";
    remember_always: "every agent of this person", "此人的所有智能体";
    remember_until: "Until", "直到";
    hour_1: "1 hour", "1 小时";
    day_1: "1 day", "1 天";
    days_7: "7 days", "7 天";
    days_30: "30 days", "30 天";
    remember_covers: "Covers", "涵盖";
    remember_same: "the very same arguments", "完全相同的参数";
    remember_like: "every {tool} whose command begins with {signature}, whatever its other arguments are", "所有命令以 {signature} 开头的 {tool}，无论其他参数为何";
    matches_title: "What it would have matched", "会匹配哪些询问";
    matches_lead: "Nothing is decided by looking. These are the questions that were recorded; what a rule answered by itself was never asked.", "查看不会作出任何决定。这里只列出有记录的询问；由规则自动答复的调用不会询问。";
    matches_see: "See what it would have matched", "查看会匹配哪些询问";
    matches_some: "Would have matched {n} asked in 30 days: {g} approved ({gy} by you), {d} denied ({dy} by you).", "过去 30 天内会匹配 {n} 次询问：批准 {g} 次（你 {gy} 次），拒绝 {d} 次（你 {dy} 次）。";
    matches_none: "Would have matched nothing else that was asked in 30 days.", "过去 30 天内没有其他询问与之匹配。";
    matches_cut: "Only the newest {n} questions about this tool were looked at.", "仅查看了关于此工具的最近 {n} 次询问。";
    matches_more: "Only the newest are listed.", "仅列出最近的询问。";
    remember_do: "Approve and remember", "批准并记住";
    remember_human: "Remember is not offered: this needs a person each time.", "不提供“记住”：此类调用每次都需要人来决定。";
    recover_lead: "It had started when a server stopped: whether it took effect is unknown.", "服务器停止时它已开始：是否生效未知。";
    recover_again: "Run it again", "再次执行";
    recover_done: "It took effect; its result was", "它已生效；结果为";
    recover_supply: "Go on with this result", "以此结果继续";
    recover_fail: "Take it for failed", "视为失败";
    trace: "Trace", "轨迹";
    announce: "Permission needed: {tool}, risk {risk}, from {agent}", "需要许可：{tool}，风险{risk}，来自 {agent}";
    layer: "layer", "层";
    outcome: "Outcome", "结果";
    rule: "rule", "规则";

    // Runs.
    status: "Status", "状态";
    who: "Who", "执行者";
    goal: "Goal", "目标";
    person: "For", "为谁";
    when: "When", "时间";
    took: "Took", "用时";
    tokens: "tokens", "词元";
    cost: "cost {n}", "费用 {n}";
    what: "What", "内容";
    timeline: "Timeline", "时间线";
    no_runs: "No runs yet.", "尚无运行。";
    status_pending: "queued", "排队中";
    status_running: "running", "运行中";
    status_waiting: "waiting", "等待中";
    status_completed: "done", "已完成";
    status_failed: "failed", "失败";
    status_cancelled: "cancelled", "已取消";
    waits_person: "waits for a person", "等待人决定";
    waits_child: "waits for a group", "等待小组";
    waits_through: "{child}, which {inner}", "{child}，小组正{inner}";
    waits_paused: "is paused", "处于暂停";
    waits_signal: "waits for a signal", "等待信号";
    waits_pause: "paused", "已暂停";
    legend_work: "at work", "工作中";
    trace_all: "Everything", "全部";
    trace_trouble: "Refused, waiting, failed", "被拒绝、等待、失败";
    trace_waited: "{t} waiting for a person", "等待人决定 {t}";
    trace_recalled: "remembered {n}", "回忆起 {n} 条";
    trace_said: "said", "说";
    trace_round: "round {n}", "第 {n} 轮";
    trace_concluded: "Concluded:", "结论：";
    trace_answer: "answer", "答复";
    trace_arguments: "arguments", "参数";
    trace_result: "result", "结果";
    trace_extended: "{tool} may wait longer, until {t}", "{tool} 可等待更久，直至 {t}";
    trace_told: "the agent was told", "告知智能体";
    trace_cut: "There is more than fits on a page:", "内容过多，页面未全部显示：";
    open_it: "Open", "打开";
    copy_link: "Copy link", "复制链接";
    follow: "Follow", "跟随";
    open_thread: "Open the thread", "打开对话";
    pause: "Pause", "暂停";
    resume: "Go on", "继续";
    resume_failed: "Go on from where it failed", "从失败处继续";
    wrap_up: "Wrap up now", "立即收尾";
    wrap_up_note: "It comes to an end with what it has.", "以现有结果结束。";
    speak_open: "Say something …", "说点什么……";
    speak_to: "To", "对象";
    whole_room: "the whole room", "整个房间";
    speak_text: "Your words", "你的话";
    speak_note: "Speaking gives information, never permission.", "说话只提供信息，绝不授予许可。";
    send: "Send", "发送";
    cancel_open: "Cancel …", "取消……";
    cancel_note: "The run ends, and all that it led to. What has run stays done.", "此运行及其引发的一切都将结束。已执行的不会撤销。";
    cancel_do: "Cancel this run", "取消此运行";

    // Talk.
    new_thread: "New thread", "新对话";
    threads: "Threads", "对话列表";
    agents: "Agents", "智能体";
    groups: "Groups", "小组";
    suggestions: "Try it", "试一试";
    suggestions_note: "A scripted model has lines for these. No AI is called; everything else is real.", "脚本模型为这些准备了台词。不调用任何 AI，其余一切都是真的。";
    why_refused: "why?", "为什么？";
    told: "Told the agent", "告知智能体";
    in_the_audit: "In the audit", "查看审计";
    composer: "Say something", "说点什么";
    composer_keys: "Enter sends · Shift+Enter for a new line · / lists commands", "Enter 发送 · Shift+Enter 换行 · / 显示命令";
    composer_busy: "your words go into the run under way", "你的话会进入正在进行的运行";
    busy: "at work …", "处理中……";
    memory_in_use: "Memory in use", "使用的记忆";
    system: "the system", "系统";
    dock_one: "1 permission waiting:", "1 项许可等待决定：";
    dock_many: "{n} permissions waiting:", "{n} 项许可等待决定：";
    member_spoken: "has spoken", "已发言";
    member_floor: "has the floor", "正在发言";
    member_silent: "not yet", "尚未发言";

    // Commands in a talk.
    commands: "Commands", "命令";
    commands_hint: "Commands: the arrow keys choose one", "命令：用方向键选择";
    command_approve: "approves a call of low or medium risk", "批准低、中风险的调用";
    command_deny: "denies it; the agent reads the reason", "拒绝调用；智能体会读到理由";
    command_why: "says why it is asked", "说明为何询问";
    command_status: "says how this thread stands", "说明此对话的进展";
    command_room: "speaks to the group that works for this thread", "对正在为此对话工作的小组说话";
    command_pause: "lets it rest before its next step", "在下一步之前暂停";
    command_wrapup: "lets it come to an end with what it has", "以现有结果收尾";
    command_forget: "forgets a memory for good", "永久遗忘一条记忆";
    command_lang: "changes the language of this console", "切换控制台语言";
    command_help: "lists the commands", "列出命令";
    command_approves: "approves {tool}", "批准 {tool}";
    command_denies: "denies {tool}, with a reason", "拒绝 {tool} 并说明理由";
    command_slash: "A message that begins with // is said with one slash.", "以 // 开头的消息会保留一个斜杠发送。";
    command_unknown: "There is no such command, and nothing was sent to the agent. There are these:", "没有这个命令，也没有向智能体发送任何内容。可用的命令：";
    command_malformed: "Nothing was done. It is written exactly like this:", "未执行任何操作。正确写法：";
    command_refused: "Nothing was done:", "未执行任何操作：";
    command_approved: "Approved: {tool}", "已批准：{tool}";
    command_denied: "Denied: {tool}", "已拒绝：{tool}";
    command_no_person: "Only a person decides here.", "这里只有人可以决定。";
    command_not_here: "Not decided in a talk: {why}.", "不能在对话中决定：{why}。";
    command_decide_there: "Decide it on its card", "到卡片上决定";
    not_here_human: "a person must look at it", "必须由人查看";
    not_here_high: "its risk is high", "风险高";
    not_here_unknown: "its risk is not known", "风险未知";
    not_here_long: "its arguments are too long to be shown here", "参数过长，无法在此完整显示";
    command_pauses: "{who} rests before its next step, until somebody lets it go on.", "{who} 将在下一步之前暂停，直到有人让它继续。";
    command_wraps_up: "{who} comes to an end with what it has.", "{who} 将以现有结果收尾。";
    command_forgot: "Forgotten: {id}", "已遗忘：{id}";
    command_nobody: "Nothing was done: nobody works for this thread.", "未执行任何操作：没有谁在为此对话工作。";
    command_no_question: "Nothing waits for an answer in this thread.", "此对话中没有等待答复的问题。";
    command_no_run: "Nothing has been said in this thread yet.", "此对话尚未开始。";

    // The audit.
    verify: "Check the chain", "校验链条";
    export: "Export", "导出";
    fork_open: "Fork …", "分叉……";
    fork_at: "Go on from", "从何处继续";
    fork_end: "where it has come to", "当前进度";
    fork_begin: "the beginning", "起点";
    fork_after: "event {n}, after {tools}", "事件 {n}，{tools} 之后";
    fork_input: "Something new to go on with, or nothing: the goal stays", "新的指示（可留空，目标不变）";
    fork_note: "A run of its own. Calls that had ended there are not made again; later ones are ruled on, asked about and made anew. Nothing that was granted here counts there.", "这是一次独立的运行。此前已结束的调用不会重新执行；之后的调用将重新裁定、重新询问、重新执行。此处的批准在新运行中无效。";
    fork_do: "Fork from here", "从这里分叉";
    forked_from: "forked from {run} at {n}", "分叉自 {run} 的事件 {n}";
    fork_carried: "Carried over, and not made again: {tools}.", "已沿用，不会重新执行：{tools}。";
    fork_dropped: "Left behind; if they are wanted here, they run and are asked about anew: {tools}.", "未沿用；如在此仍需要，将重新执行并重新询问：{tools}。";
    fork_ran: "ran there", "当时已执行";
    fork_asked: "was asked about there", "当时已询问";
    trace_carried: "read there", "当时已读";
    agent: "Agent", "智能体";
    tool_word: "Tool", "工具";
    kind: "Kind", "类型";
    since: "Since", "时间范围";
    no_entries: "There is no such entry.", "没有符合的记录。";
    about_what: "About", "关于";
    role: "Role", "角色";
    reference: "Reference", "引用";
    why_title: "Why", "原因";
    ask_again: "What the rules in force say", "现行规则怎么说";
    layers_then: "Every layer, as it was then", "当时各层的意见";
    layers_unnamed: "The record names no layer: the call had been cleared, and was refused as it was about to run.", "记录中没有各层的意见：该调用曾获放行，在即将执行时被拒绝。";
    layer_passes: "pass", "通过";
    layer_objects: "objects", "反对";
    layer_aside: "not looked at", "未检查";
    layer_decides: "decides", "起决定作用";
    now_title: "By the rules in force (v{n}):", "按现行规则（v{n}）：";
    now_same: "The same as then. Every layer now", "与当时相同。查看现在各层的意见";
    now_other: "Not as it was then. Every layer now", "与当时不同。现在各层的意见";
    through_title: "What would let it through", "怎样才能通过";
    way_now: "Now", "现在即可";
    way_later: "Later", "稍后";
    way_run: "Needs another run", "需要另起运行";
    way_agent: "Needs another agent", "需要其他智能体";
    way_person: "Needs a person", "需要有人批准";
    way_organisation: "Needs a change of the organisation, all of it", "需要修改组织（以下各项缺一不可）";
    way_who: "may be changed by {who}", "可由{who}修改";
    way_or: ", or by ", "，或";
    way_draft: "draft it", "起草";
    why_through: "Why, and what would let it through", "原因，以及怎样才能通过";
    detail: "Detail", "详情";
    chain_place: "Entry", "记录";
    chain_ok: "The chain holds.", "链条完整。";
    chain_broken: "The chain is broken.", "链条已断裂。";
    entries: "Entries", "记录数";
    from_when: "From", "自";
    to_when: "To", "至";
    head: "Head", "链头";
    chain_limits: "This shows edits, insertions and deletions inside the log. It cannot show that the end was cut off: keep the head elsewhere and compare it.", "这能发现日志内部的篡改、插入和删除，但无法发现末尾被截断：请将链头另存他处并比对。";

    // The organisation.
    roles: "Roles", "角色";
    tools: "tools", "个工具";
    tools_title: "Tools", "工具";
    source: "from", "来源";
    chart: "Chart", "架构";
    communication: "Communication", "沟通";
    check: "Check", "检查";
    people: "People", "人员";
    as_table: "As a table", "以表格显示";
    reports_to: "Reports to", "上级";
    level_tools: "Level and tools", "级别与工具";
    sign_yes: "allowed", "允许";
    sign_ask: "asked about", "需询问";
    sign_human: "a person must be asked", "必须由人决定";
    sign_no: "refused", "拒绝";
    mail_yes: "may write", "可以写信";
    mail_ask: "only under an active contract", "仅在有效合同下";
    mail_no: "blocked", "被阻止";
    row_writes: "A row writes to a column.", "行写信给列。";
    matrix_filter: "Tools whose name contains", "名称包含";
    matrix_shown: "{n} of {all} tools", "共 {all} 个工具，显示 {n} 个";
    matrix_cut: "There are more agents than fit on a page:", "智能体过多，页面未全部显示：";
    mail_blocked: "Nothing that the one writes reaches the other.", "一方写的任何邮件都无法送达另一方。";
    needs_contract: "needs an active contract", "需要有效合同";
    arguments_aside: "The arguments are left aside: rules over them may be stricter.", "未考虑参数：针对参数的规则可能更严格。";
    from: "From", "发件人";
    to: "To", "收件人";
    group: "Group", "小组";
    members: "Members", "成员";
    lead: "Lead", "组长";
    description: "What for", "用途";
    check_fine: "Nothing to say against it.", "没有问题。";
    check_pending: "The files on disk have mistakes and are not in force:", "磁盘上的文件有错误，尚未生效：";

    draft: "Draft", "草案";
    draft_open: "Draft a change …", "起草变更……";
    draft_lead: "Nothing is in force until it is applied. Check says what is wrong, what it means, and what it would have meant in the last 30 days.", "应用之前不会生效。检查会指出错误、说明含义，并给出过去 30 天会受到的影响。";
    draft_files: "Files", "文件";
    draft_changed: "changed", "已改动";
    draft_check: "Check", "检查";
    draft_drop: "Drop the draft", "放弃草案";
    draft_wrong: "It cannot be put in force as it is:", "目前无法生效：";
    draft_means: "What it means", "含义";
    draft_means_nothing: "Nobody may do more or less than now.", "没有任何人的权限发生变化。";
    draft_lines: "Which lines differ", "改动的行";
    draft_apply: "Put it in force", "使其生效";
    draft_apply_note: "It holds from the next call on, for every run. The version before is kept.", "从下一次调用起对所有运行生效。先前的版本会保留。";
    draft_late: "another version was put in force meanwhile: begin the draft anew", "期间已有其他版本生效：请重新起草";
    draft_unchecked: "The text was changed after it was checked. Nothing was put in force: below is what it says now.", "文本在检查之后已改动，因此没有生效：下面是按现在的文本重新检查的结果。";
    draft_from: "Begun from v{n}. Nothing is in force until it is checked and applied.", "以 v{n} 为起点。检查并应用之前不会生效。";
    history: "History", "历史";
    history_lead: "Every version that was in force, and what each of them changed. To go back is to draft from an earlier one.", "曾经生效的每个版本及其改动。要回到过去，请以先前的版本为起点起草。";
    history_version: "Version", "版本";
    history_changed: "What changed", "改动";
    history_first: "the first", "最初版本";
    history_unread: "This server cannot read it.", "本服务器无法读取此版本。";
    history_more: "and {n} more", "另有 {n} 项";
    history_now: "in force", "现行";
    history_draft: "Draft from it", "以此起草";
    history_compare: "Compare", "比较";
    history_from: "From version", "从版本";
    history_to: "to version", "到版本";
    effect_wider: "wider", "放宽";
    effect_narrower: "narrower", "收紧";
    effect_changed: "changed", "变更";
    impact: "On the last 30 days", "对过去 30 天的影响";
    impact_summary: "Of {n} calls in {r} runs, {s} would be ruled on more strictly, {l} less.", "{r} 次运行中的 {n} 个调用里，{s} 个会更严，{l} 个会更宽。";
    impact_unknown: "{n} calls of MCP servers cannot be judged before the draft is in force.", "{n} 个 MCP 服务器的调用在草案生效前无法判断。";
    impact_cut_off: "There were more runs: the newest were looked through.", "运行过多：只检查了最近的部分。";
    impact_note: "Calls are judged with their arguments, under contracts as they are now; what people answered and what rates allowed is left aside. Mail is judged by who wrote what type to whom, under the contracts of its time; its attachments and fields are left aside.", "调用按其参数并依照现有合同判断；不考虑人的答复和速率限制。邮件按发件人、收件人和类型，并依照当时的合同判断；不考虑附件和字段。";
    impact_mail: "Of {n} mails, {p} blocked ones would have passed, {b} delivered ones would have been blocked.", "{n} 封邮件里，{p} 封曾被阻止的会送达，{b} 封已送达的会被阻止。";
    impact_mail_cut_off: "There were more mails: the newest were looked through.", "邮件过多：只检查了最近的部分。";
    impact_was: "Was", "当时";
    mail_delivered: "delivered", "送达";
    mail_counts: "30 days: {n} sent, {b} blocked", "30 天内：发出 {n} 封，被阻止 {b} 封";
    impact_now: "Now", "现在";
    impact_then: "Then", "之后";
    impact_times: "Times", "次数";

    // Mail and contracts.
    box_of: "Mailbox of", "邮箱";
    received: "Received", "收到";
    sent: "Sent", "已发送";
    rejected: "Rejected", "被拒";
    rejection: "Rejected mail", "被拒的邮件";
    rejection_note: "The audit has no entry of this: it is shown from what is kept of rejected mail.", "审计中没有这一条：此处依据留存的被拒邮件显示。";
    contracts: "Contracts", "合同";
    contract: "Contract", "合同";
    write_open: "Write as the board", "以董事会名义写信";
    write_note: "The board writes to those who report to it. Mail hands on work, never permission.", "董事会写信给其直接下属。邮件只传递工作，绝不授予许可。";
    subject: "Subject", "主题";
    text: "Text", "正文";
    no_mail: "No mail here.", "没有邮件。";
    no_contracts: "No contracts yet.", "尚无合同。";
    answered_by: "Answered by", "由其答复";
    attachment: "Attachment", "附件";
    agent_wrote_mail: "What its sender wrote. The sender is set by the system.", "以上为发件人所写。发件人由系统设定。";
    deliverables: "Deliverables", "交付物";
    acceptance: "Accepted when", "验收标准";
    workspace_scope: "Workspace", "工作区";
    branch: "Branch", "分支";
    deadline: "Deadline", "截止时间";
    steps: "Steps", "步骤";
    note: "Note", "备注";
    issued_under: "Issued under it", "其下签发";
    move_on: "Move it on", "推进";

    // Memory.
    search: "Search", "搜索";
    mode: "As", "方式";
    mode_flat: "all that I may read", "我能读到的全部";
    mode_personal: "my agent would recall it", "我的智能体会如何回忆";
    kind_core: "core", "核心";
    kind_episodic: "episodic", "情景";
    kind_archival: "archival", "归档";
    no_memories: "Nothing is remembered here.", "这里没有记忆。";
    tier: "tier", "层级";
    source_call: "written in {run}", "写于 {run}";
    source_group: "found by the group in {run}", "小组在 {run} 中得出";
    source_output: "the result of {run}", "{run} 的结果";
    superseded: "corrected since", "已被更正";
    forget_open: "Forget …", "遗忘……";
    forget: "Forget", "遗忘";
    forget_note: "It is gone for good, with what it had taken the place of.", "将永久消失，连同它所取代的内容。";
    scope_user: "person", "人员";
    scope_project: "project", "项目";
    scope_group: "group", "小组";
    scope_agent: "agent", "智能体";
    scope_org: "the organisation", "整个组织";

    // Standing rules.
    rules_title: "Standing rules", "长期规则";
    rules_lead: "Answers that are remembered. Each ends by itself, and can be taken back.", "被记住的答复。每条都会自行到期，也可随时撤回。";
    no_rules: "No answer is remembered. “Approve and remember …” on a question in the inbox makes one.", "没有被记住的答复。在待办的问题上选择“批准并记住……”即可添加。";
    made: "Made", "创建";
    take_back: "Take back", "撤回";
    taken_back: "taken back", "已撤回";
    rule_hits_title: "Hits", "命中";
    rule_hits: "{n} · {t}", "{n} 次 · {t}";
    rule_hits_none: "none yet", "尚未命中";
    rule_hits_old: "none lately", "近期未命中";
    rule_narrow_open: "Narrow …", "收窄……";
    rule_narrow: "Narrow", "收窄";
    rule_narrow_note: "It can cover less and end sooner, never more. For more, answer the next question anew.", "只能缩小范围或提前到期，不能扩大。如需更多，请在下次询问时重新决定。";
    rule_as_it_is: "as it is", "保持不变";
    rule_did_revoke: "Taken back: {tool}. What it covered is asked again, also calls that it has cleared and that have not begun.", "已撤回：{tool}。它涵盖的调用将重新询问，包括已放行但尚未开始的调用。";
    rule_did_narrow: "Narrowed: {tool} holds for {scope}, {t} more.", "已收窄：{tool} 适用于{scope}，还剩 {t}。";
    rule_taken_back: "taken back by {name}", "由 {name} 撤回";

    // Settings.
    models: "Models", "模型";
    model: "Model", "模型";
    no_models: "No model is set up. Until one is, a script answers with a few lines, and no AI is called: name a model in the settings' file, or set OPENAI_API_KEY.", "未配置模型。在此之前由脚本用几句台词应答，不会调用任何 AI：请在设置文件中写明模型，或设置 OPENAI_API_KEY。";
    model_test: "Test", "测试";
    model_answers: "answers", "有应答";
    model_silent: "no answer within {n} s", "{n} 秒内没有应答";
    model_failed: "does not answer", "无应答";
    server_here: "connected", "已连接";
    server_away: "unreachable", "无法连接";
    people_none: "The organisation names nobody: everyone with a token has no limits of their own.", "组织未列出任何人：持有令牌者没有个人限制。";
    people_allowed: "Only these tools", "仅限这些工具";
    people_denied: "Never these", "禁止这些";
    people_no_limit: "no limit", "无限制";
    notifications: "Notifications", "通知";
    no_deliveries: "Nobody was told anything yet. Webhooks and letters are set up in the settings' file.", "尚未通知任何人。请在配置文件中设置 Webhook 与邮件。";
    notify_test: "Send a test", "发送测试";
    notify_told: "was told", "已收到";
    notify_failed: "was not told", "未能送达";
    attempt: "Attempt", "次数";
    delivered: "taken", "已送达";
    name: "Name", "名称";
    provider: "Provider", "提供方";
    tiers: "Tiers", "档位";
    scripted_note: "no AI is called", "不调用任何 AI";
    set_in_file: "These are set in", "以上在此文件中设置：";
    mcp_servers: "MCP servers", "MCP 服务器";
    no_servers: "No MCP server is connected.", "未连接 MCP 服务器。";
    tokens_title: "Tokens", "令牌";
    tokens_lead: "A person, a program and an agent hold different kinds.", "人员、程序与智能体持有不同类型的令牌。";
    token_new: "New token …", "新令牌……";
    token_human: "a person", "人员";
    token_service: "a program", "程序";
    token_agent: "an agent", "智能体";
    token_operator: "may act for everyone (people only)", "可代表所有人（仅限人员）";
    token_approve: "may answer what is asked (programs only)", "可答复询问（仅限程序）";
    token_make: "Make it", "创建";
    token_made: "The token:", "令牌：";
    token_shown: "The token was made, and its secret was shown once. It is not shown again: if it was not kept, take the token back and make another.", "令牌已创建，密钥已显示过一次，不会再次显示。如未保存，请撤回该令牌并重新创建。";
    sure_title: "Are you sure?", "确定吗？";
    sure_signs_out: "You are signed in with this: you will be signed out.", "你正是以此登录的：继续将会退出登录。";
    sure_last_operator: "This is the last operator’s token ({name}): nobody could change anything here that needs an operator. On the server’s machine, `chancery token new --operator` makes another.", "这是最后一个管理员令牌（{name}）：此后将无人能进行需要管理员的操作。可在服务器上用 `chancery token new --operator` 重新创建。";
    sure_not: "Leave it", "保留";
    token_once: "It is shown this once. Keep it where nobody else reads.", "仅显示这一次。请妥善保管。";
    visits_title: "Visits", "登录会话";
    visit_began: "Began", "开始";
    visit_until: "Until", "截止";
    visit_this: "this one", "当前";
    visit_end: "End it", "结束";
    visits_end: "End all my other visits", "结束我的其他会话";
    may: "May", "权限";
    approves: "approves", "可批准";
    for_operators: "This is for operators.", "仅限管理员。";
    about: "About", "关于";
    store: "Store", "存储";
    isolation: "Isolation", "隔离";
    isolation_on: "commands run behind walls that the kernel holds", "命令在内核强制的隔离中运行";
    isolation_off: "OFF: commands can do whatever this server's user can", "关闭：命令可做服务器用户能做的一切";
    isolation_lacking: "LACKING: commands are refused", "缺失：命令被拒绝执行";
    telemetry: "Telemetry", "遥测";
    doctor_note: "What would stand in the way:", "检查可能的问题：";
}

/// How long it is from one time to another, as a person says it.
pub fn span(w: &Words, from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    let (d, h, m, s) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let part = |n: i64, unit: &str| format!("{n} {unit}");
    match (d, h, m, s) {
        (0, 0, 0, 0) => w.now.to_owned(),
        (0, 0, 0, s) => part(s, w.unit_s),
        (0, 0, m, 0) => part(m, w.unit_m),
        (0, 0, m, s) if m < 10 => format!("{} {}", part(m, w.unit_m), part(s, w.unit_s)),
        (0, 0, m, _) => part(m, w.unit_m),
        (0, h, 0, _) => part(h, w.unit_h),
        (0, h, m, _) => format!("{} {}", part(h, w.unit_h), part(m, w.unit_m)),
        (d, 0, ..) => part(d, w.unit_d),
        (d, h, ..) => format!("{} {}", part(d, w.unit_d), part(h, w.unit_h)),
    }
}

/// A sentence with its gaps filled.
pub fn fill(sentence: &str, gaps: &[(&str, &str)]) -> String {
    gaps.iter().fold(sentence.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

impl Words {
    pub fn risk_word(&self, risk: &str) -> &'static str {
        match risk {
            "high" => self.risk_high,
            "medium" => self.risk_medium,
            "low" => self.risk_low,
            _ => self.risk_none,
        }
    }

    pub fn status_word(&self, status: &str) -> &'static str {
        match status {
            "running" => self.status_running,
            "waiting" => self.status_waiting,
            "completed" => self.status_completed,
            "failed" => self.status_failed,
            "cancelled" => self.status_cancelled,
            _ => self.status_pending,
        }
    }

    /// Of a cell in the matrix of tools.
    pub fn sign_word(&self, sign: &str) -> &'static str {
        match sign {
            "yes" => self.sign_yes,
            "ask" => self.sign_ask,
            "human" => self.sign_human,
            _ => self.sign_no,
        }
    }

    /// Of a member of a room.
    pub fn presence_word(&self, presence: Presence) -> &'static str {
        match presence {
            Presence::Spoken => self.member_spoken,
            Presence::Floor => self.member_floor,
            Presence::Waits => self.waits_person,
            Presence::Silent => self.member_silent,
        }
    }

    /// Of a cell in the matrix of mail.
    pub fn mail_word(&self, sign: &str) -> &'static str {
        match sign {
            "yes" => self.mail_yes,
            "ask" => self.mail_ask,
            _ => self.mail_no,
        }
    }

    /// Of a memory.
    pub fn kind_word(&self, kind: &str) -> &'static str {
        match kind {
            "core" => self.kind_core,
            "episodic" => self.kind_episodic,
            _ => self.kind_archival,
        }
    }

    pub fn is_chinese(&self) -> bool {
        self.inbox == ZH.inbox
    }

    /// Of a ruling. In English it is the word of the wire, as logs and the command line have it.
    pub fn ruling_word<'r>(&self, ruling: &'r str) -> &'r str {
        match ruling {
            "allow" if self.is_chinese() => "允许",
            "require_approval" if self.is_chinese() => "须批准",
            "require_human" if self.is_chinese() => "须真人批准",
            "deny" if self.is_chinese() => "拒绝",
            other => other,
        }
    }

    /// Of one of the sides from which a call is looked at.
    pub fn layer_word<'l>(&self, layer: &'l str) -> &'l str {
        match layer {
            "identity" if self.is_chinese() => "身份",
            "tool" if self.is_chinese() => "工具",
            "delegation" if self.is_chinese() => "委托",
            "role" if self.is_chinese() => "角色",
            "risk" if self.is_chinese() => "风险",
            "capability" if self.is_chinese() => "能力",
            "arguments" if self.is_chinese() => "参数",
            "limits" if self.is_chinese() => "限额",
            "mail" if self.is_chinese() => "邮件",
            "sender" if self.is_chinese() => "发件人",
            "recipient" if self.is_chinese() => "收件人",
            "contact" if self.is_chinese() => "联系人",
            "type" if self.is_chinese() => "类型",
            "contract" if self.is_chinese() => "合同",
            "attachments" if self.is_chinese() => "附件",
            "fields" if self.is_chinese() => "字段",
            other => other,
        }
    }

    /// Of what it takes to let something through.
    pub fn way_word(&self, kind: &str) -> &'static str {
        match kind {
            "now" => self.way_now,
            "later" => self.way_later,
            "run" => self.way_run,
            "agent" => self.way_agent,
            "person" => self.way_person,
            _ => self.way_organisation,
        }
    }

    /// Of a question, or of a call that asks nothing.
    pub fn state_word(&self, state: &str) -> &'static str {
        match state {
            "granted" => self.state_granted,
            "denied" => self.state_denied,
            "expired" => self.state_expired,
            "cancelled" => self.state_cancelled,
            "allowed" => self.state_allowed,
            "refused" => self.state_refused,
            _ => self.state_pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that are the same in both.
    const SAME: &[&str] = &[];

    fn gaps(text: &str) -> Vec<&str> {
        let mut gaps: Vec<&str> =
            text.split('{').skip(1).filter_map(|it| it.split_once('}').map(|it| it.0)).collect();
        gaps.sort_unstable();
        gaps
    }

    #[test]
    fn both_languages_say_everything_with_the_same_gaps() {
        for (name, en, zh) in ALL {
            assert!(!en.is_empty() && !zh.is_empty(), "{name}");
            assert_eq!(gaps(en), gaps(zh), "{name}");
            let chinese = zh.chars().any(|it| ('\u{4e00}'..='\u{9fff}').contains(&it));
            assert!(chinese || SAME.contains(name), "{name} is not translated: {zh}");
            assert!(en.is_ascii() || en.contains(['…', '·', '’', '→']), "{name}: {en}");
        }
    }

    #[test]
    fn a_span_is_said_in_at_most_two_units() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let said = |seconds| span(&EN, at(0), at(seconds));
        assert_eq!(
            [0, 9, 72, 600, 4000, 90_000].map(said),
            ["a moment", "9 s", "1 min 12 s", "10 min", "1 h 6 min", "1 d 1 h",]
        );
        assert_eq!(said(-5), "a moment");
        assert_eq!(span(&ZH, at(0), at(4000)), "1 小时 6 分钟");
    }
}
