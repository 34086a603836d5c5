"""More optional fields: those of orders, events, people, tickets and recipes."""

from rtlang.model.embedded import extras_lead_ins
from rtlang.model.embedded.extras import told, yes_no
from rtlang.model.embedded.words import Draw

EXPRESS = yes_no(
    "express",
    """
Express [delivery/shipping/mail], please.
[Send/Ship/Deliver] it by express[./, please.]
Express [shipping/delivery] was [chosen/booked/paid for].
[Express: yes./With express delivery./It goes by express.]
[We pay extra for/The customer wants/I would like] express [shipping/delivery].
[The fast way/The fastest delivery/Overnight delivery/Fast shipping] [was chosen/please/is paid/is wanted].
[It should/It must/It has to] [arrive tomorrow/come overnight/go the fast way/be sent by express].
[Express/Express service/Overnight/The fast one][./, please./!]
[Send/Ship] it [overnight/the fast way/as an express parcel].
""",
    """
[Normal/Standard/Regular] delivery is fine.
No express [shipping/delivery][ needed/, please/ was chosen].
Standard [shipping/delivery], not express.
[Express: no./Without express delivery./It need not go by express.]
[It can go by normal mail/The normal way is fast enough/Slow shipping will do], no express[, please/].
[Normal/Standard/Regular/Usual/Slow] [shipping/mail/post/speed][./, please./ is enough.]
[It may/It can] [take a week/take its time/come slowly/go the slow way].
[We do not/I do not/They do not] [need/want/pay for] [express/the fast way].
""",
    "It should go by express mail.",
    "Regular mail will do, no express.",
    block="express",
)
GIFT = yes_no(
    "gift",
    """
It is a [gift/birthday gift/gift for a friend].
Please wrap it [as a gift/in gift paper, it is a gift].
[This/All of it/The parcel] is meant as a gift.
[Gift: yes./With gift wrapping, please./A gift!]
[We want to give it away/I give it to my mother/It goes to a friend] as a gift.
[It is/This is/They are] [for a birthday/a present/meant for my sister/a surprise for a friend].
[A present/A birthday present/A surprise for my mother/For a birthday][./!/, so wrap it.]
[Please add/Put in/Add] a [card/ribbon/bow][./, it is a present./ for the birthday.]
[We/I] [give/will give] it [to a friend/to my father/away] [as a present/for a birthday].
""",
    """
[It/This] is not a gift[./, by the way.]
No gift [wrapping/paper][, please/ needed/].
Not [meant as/sent as/bought as] a gift.
[Gift: no./Without gift wrapping./No gift.]
[I keep it myself/It is for the office/We use it ourselves], [it is not/so it is not/not] a gift.
[It is/This is] [not a present/for myself/for my own use/for us/no present].
[No/Without a] [card/ribbon/bow][ needed/, it is not a present/, please].
[I will use it/We need it/It stays with us/It is for me] [myself/ourselves/at home/only].
[Not a present/For own use/Not for a birthday/No present][./!]
""",
    "It will be given as a gift.",
    "It is no gift.",
    block="gift",
)
FREE = yes_no(
    "free",
    """
[Entry/Admission/Everything/The whole evening] is [free/free of charge/free for all].
It costs nothing to [attend/come/get in].
It is free[ of charge/ for everybody/].
[Free: yes./Free entry./Free admission!]
[You need no ticket/You do not have to pay/Nobody pays for a ticket], [it is free/entry is free/all is free].
[No ticket/No fee/No money/No entry fee] [is needed/to pay/needed].
[Come in/Everybody gets in/Guests come in/We let you in] [for nothing/at no cost/without paying/free of charge].
[The price/Entry/Admission] is [zero/nothing/on us].
[We ask for/It takes/There is] no [money/entry fee/fee].
""",
    """
[Entry/Admission] is not free[./, sorry.]
There is [an entry fee/a fee/a charge at the door].
You [need to/have to/must] buy a ticket.
It is not free[ of charge/].
[Free: no./No free entry./Tickets cost money.]
[Everybody pays/All guests pay/You pay] [at the door/for a ticket/a small fee].
[The entry fee/The ticket/Entry/Admission] [costs money/has its price/must be paid/has to be paid].
[Bring money/Bring some coins/Buy a ticket first/Get a ticket][./, there is a fee.]
[We ask for/They take/They charge] [money/an entry fee/a fee][./ at the door.]
[Not for free/Paid entry/For paying guests only/Paid tickets only][./!]
""",
    "Nobody has to pay.",
    "Visitors have to pay.",
    block="free",
)
GUESTS = told(
    "guests",
    lambda d: d.number(5, 400),
    """
[About/Around/Some/] {} [guests/people/visitors] are expected.
There is [room/space] for {} [guests/people].
{} [people/guests] will come.
[Guests/Number of guests/Guests expected]: {}.
We [expect/invited/hope for/wait for] {} guests.
The [number of guests/guest list] [is/counts/stands at] {}.
"""
    + extras_lead_ins.GUESTS,
    "{} visitors have signed up.\nThe list has {} guests.",
)
MARRIED = yes_no(
    "married",
    """
Married[./ with two children./ for some time.]
[Marital status/Family status/Status]: married.
The [family/marital] status is married.
[Married: yes./Happily married./Got married last year./Now married.]
[By now,/Since last summer,] married.
[Has a/Lives with a/Lives with the/Shares a home with a] [husband/wife][./ and two children.]
[Wears a ring/Said yes last year/Tied the knot in May/The wedding was last year][./, now married.]
[Married/Happily married/Long married/Married since May/Married, two children][./!]
[Is married/Has been a husband/Has been a wife][./ for a long time.]
""",
    """
[Not married./Not married yet./Not yet married.]
[Unmarried./Single./Still single, not married.]
[Marital status/Family status/Status]: [single/not married/unmarried].
[Married: no./Lives alone, not married./Single and not married.]
The [family/marital] status is [single/unmarried].
[Has no/Lives without a/Is looking for a/Still has no] [husband/wife][./ yet.]
[Is/Lives/Stays/Remains] [single/unmarried/alone/a bachelor][./ so far.]
[Single/A bachelor/Unmarried/Not married so far/Divorced/Single for now][./!]
[No wedding/No ring/No husband/No wife] [so far/yet/until now].
[Has not/Did not] [married yet/been married/say yes yet].
""",
    "Has been married for years.",
    "A wedding ring was never bought.",
    block="married",
)
EMPLOYER = told(
    "employer",
    Draw.company,
    """
The [employer/company/name of the employer] is {}.
[Works/Working/Has worked] for {}[./ for years./ since May.]
[Employer/Company/Firm/Works for]: {}.
[Employed/Hired] by {}.
[The salary is paid by/The job is at/The work is done for] {}.
[Has a desk/Has a job/Works] at {}.
"""
    + extras_lead_ins.EMPLOYER,
    "On the payroll of {}.\n{} is the employer.",
)
RESOLVED = yes_no(
    "resolved",
    """
The [problem/trouble/case] [is solved/has been solved/is resolved].
It [has been/is/was] [resolved/solved/fixed][./ now./ this morning.]
[Fixed in the meantime./Solved in the meantime./It works again, resolved.]
[Resolved: yes./Status: resolved./Solved: yes.]
[All is fine again/Everything works again/We repaired it], so it is [resolved/solved].
[It works/All works/Everything runs] [again/now/as it should][./, case closed.]
[We/They/Somebody] [fixed/repaired/solved/closed] it[./ today./ already.]
[Closed/Solved/Fixed/Done/Case closed/Repaired][./ today./ already./!]
[No more trouble/The trouble is over/Nothing left to do][./ with it.]
""",
    """
It is not [solved/resolved/fixed] yet.
[Still not resolved./Still not solved./Not fixed so far.]
The [problem/case/trouble] [remains open/is still open/is not solved].
[Resolved: no./Status: open./Status: not resolved./Solved: no.]
[Nobody fixed it yet/It still happens/We still work on it], so it is not [resolved/solved].
[It does not work/Nothing works/It still fails/It is broken] [so far/yet/still].
[We/They/Nobody] [have not fixed/could not fix/still try to solve/did not repair] it[./ yet.]
[Open/Still open/Unsolved/Not done/Pending/In progress][./ so far./!]
[The trouble/The problem] [goes on/is still there/has not gone away].
""",
    "All fine again by now, resolved.",
    "Nobody has resolved it so far.",
    block="resolved",
)
VEGAN = yes_no(
    "vegan",
    """
[The dish/The meal/The recipe/It/All of it] is vegan[./!]
[Vegan: yes./A vegan dish./Vegan!/Good for vegan friends.]
[Everything in it is/You can call it/It is completely] vegan.
[No meat/No milk/Nothing from animals/No egg, no milk] [is in it/at all/inside][./, so vegan.]
[Vegans/Vegan friends/People who live vegan] [can eat it/may eat it/will like it/love it].
[Only plants/Plants only/Only vegetables] [go in/are in it/are used].
[Made/Cooked] without [meat or milk/anything from animals].
""",
    """
[The dish/The meal/The recipe/It] is not vegan.
[Vegan: no./Not vegan./No vegan dish./Not for vegan friends.]
[Not everything in it is/You cannot call it/Sorry, it is not] vegan.
[It has/There is/It contains/You need] [meat/milk/butter/egg/cheese][ in it/], so it is not vegan.
[Vegans/Vegan friends/People who live vegan] [cannot eat it/may not eat it/should not eat it].
[Not only plants/Not just vegetables] [go in/are in it/are used].
""",
    "Suits vegan guests.",
    "Unfit for vegan guests.",
    block="vegan",
)
AUTHOR = told(
    "author",
    Draw.full_name,
    """
[Recipe/A recipe/Written] by {}.
The recipe [comes from/is by/was written by/was sent in by] {}.
[Author/Written by/By]: {}.
The author [is/of the recipe is] {}.
{} [wrote the recipe/is the author/wrote this down/gave us the recipe].
[I got/We got/I have] the recipe from {}.
[Thank you/Thanks], {}, for [writing the recipe/the recipe].
"""
    + extras_lead_ins.AUTHOR,
    "Written down by {}.\nThanks to {} for the recipe.",
)
DIFFICULTY = told(
    "difficulty",
    lambda d: d.pick(("easy", "medium", "hard")),
    """
The [difficulty/level of difficulty] is {}.
[Difficulty/Difficulty level/How difficult?]: {}.
[This is/It is/The recipe is] rated as {}.
[The cooks say it is/Most people find it/We rate it] {}.
[The difficulty of the recipe/Its difficulty] is {}.
"""
    + extras_lead_ins.DIFFICULTY,
    "Level: {}.\nIt counts as {}.",
)
