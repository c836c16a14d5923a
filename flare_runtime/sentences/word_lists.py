"""Words that decide where a sentence ends: abbreviations and words that open sentences.

Abbreviations stand without their last dot, in lower case if their case means nothing.
"""

NEVER_END = frozenset(
    "Dr Mr Mrs Ms Mx Prof Rev Fr Hon Gen Col Capt Cmdr Lt Maj Sgt Gov Sen Rep Pres Supt Messrs Mme"
    " Mlle Sr.a Hr Msgr Amb Atty Adm"
    " e.g eg i.e ie cf viz vs v ca c approx incl excl esp resp aka a.k.a w.r.t"
    " z.b d.h u.a bzw ggf vgl डॉ г ул им т.е т.к".split()
)
"""Nothing that follows makes these the end of a sentence."""

END_BEFORE_OPENER = frozenset(
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun"
    " Mt Ft Rd Ave Univ Dept Assn Misc"
    " inc ltd corp co llc plc bros dept st ave blvd jr sr esq al et.al ibid"
    " ph.d b.sc m.sc d.sc ed.d b.eng m.eng m.phil d.phil ll.b ll.m b.tech m.tech s.p.a".split()
)
"""These end a sentence only when a word that opens sentences follows."""

END_BEFORE_CAPITAL = frozenset("etc usw т.д т.п".split())
"""These end a sentence unless a small letter or a digit follows."""

NEED_NUMBER = frozenset(
    "no nos nr fig figs eq eqs sec secs vol vols p pp n° § Art Ch Chap Para Tab App Ref Refs"
    " Ver Pt".split()
)
"""Abbreviations when a number or a single letter follows; plain words otherwise."""

OPENERS = frozenset(
    "a an the this that these those it its he she we they you i his her their our my your one"
    " in on at by for from with without within to of into over under during through between among"
    " if when whenever while where wherever what who whom whose why how which whether"
    " then there here thus hence so therefore however nevertheless nonetheless moreover furthermore"
    " additionally also besides instead otherwise meanwhile finally next later earlier afterwards"
    " but and or yet nor because since although though unless until once after before as than"
    " first second third last now today tomorrow yesterday recently currently usually often always"
    " never sometimes generally typically overall similarly likewise consequently specifically"
    " unfortunately fortunately note please not no yes some many most all both each every any"
    " another other others several few such only even just like unlike despite according based"
    " given do does did is are was were be has have had can could will would should must might let"
    " see use run make go get set add try ask call open close click check select enter press read"
    " write wait start stop restart install remove replace keep choose create follow"
    " contact".split()
)
"""Words that, with a capital, begin sentences far more often than names."""
