//! Words that say nothing about what is looked for. They are left out of questions only: what is
//! remembered keeps every word, so that the list can change without indexing anything again.

/// English words, as they are written and not as they are stemmed.
const ENGLISH: &str = "a about above after again against all also am an and any are aren't as at be \
    because been before being below between both but by can can't cannot could couldn't did didn't do \
    does doesn't doing don't down during each ever few for from further get got had hadn't has hasn't \
    have haven't having he he'd he'll he's her here here's hers herself him himself his how how's i \
    i'd i'll i'm i've if in into is isn't it it's its itself just let's me might more most much must \
    mustn't my myself no nor not now of off oh ok okay on once only or other ought our ours ourselves \
    out over own please really same shall shan't she she'd she'll she's should shouldn't so some \
    such tell than that that's the their theirs them themselves then there there's these they \
    they'd they'll they're they've this those through to too under until up us very was wasn't we \
    we'd we'll we're we've well were weren't what what's when when's where where's which while who \
    who's whom whose why why's will with won't would wouldn't yeah yes you you'd you'll you're \
    you've your yours yourself yourselves";

/// Characters of Chinese that mostly carry grammar. Two of them side by side say nothing.
const CHINESE: &str = "的了是我你他她它们这那吗呢吧啊呀哪什么怎样和与或在有也都就很还被把给让对从到为\
    个些不没过着地得会能可以要想说曾经多少谁几";

pub(super) fn is_english(word: &str) -> bool {
    // Short, and asked for a few words of a question: a scan is quick enough.
    ENGLISH.split_ascii_whitespace().any(|it| it == word)
}

pub(super) fn is_chinese(it: char) -> bool {
    CHINESE.contains(it)
}
