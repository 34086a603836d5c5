"""More ways to tell whether orders, events, people, tickets and recipes have something or not, a line each."""

EXPRESS = (
    """
[A courier/A fast courier/A rider/The fast van] [should bring it/brings it/will come/picks it up] [today/overnight/at once].
[Choose/Take/Book/Pick] the [fastest/quickest] [way/service/mail/van][./, please./ that there is.]
[Shipping/Delivery/Kind of delivery/Mail]: [express/fast/overnight/the fast one/next day].
[Next day/Same day/Overnight/Twelve hour] [delivery/service/shipping][./, please./ was booked.]
[We/I/They] [pay/paid/will pay] [more/extra/a little more] [to have it fast/for speed/so that it comes tomorrow].
[It flies/It travels/It goes] [by air/with the courier/on the night train], [it is an express/express as ordered/the fast way].
[By/Before] [noon tomorrow/tomorrow morning/tonight] it [has to/must] be [here/delivered/there], [so send it express/by courier].
[Is it express/Express]? [Yes/Sure/Of course/Please], [the fast way/overnight/it is].
[The slow way/Normal mail/Standard mail] [is not enough/takes too long/will not do][./, so express./, take the fast one.]
[With/Via/Through] [the fast service/the express van/a courier/express mail][./, please./, as agreed.]
""",
    """
[No courier/No fast van/No rider] [is needed/should come/has to come].
[Choose/Take/Book/Pick] the [cheapest/slowest/usual] [way/service/mail/van][./, please./ that there is.]
[Shipping/Delivery/Kind of delivery/Mail]: [standard/normal/slow/regular/the cheap one].
[Five day/Weekly/Cheap/Standard] [delivery/service/shipping][./, please./ was booked.]
[We/I/They] [do not pay/will not pay/refuse to pay] [more/extra] [to have it fast/for speed/so that it comes tomorrow].
[It travels/It goes/It comes] [by ship/by land/with the weekly van/with the rest of the mail], [not express/no fast way/the slow way].
[Next week/Some day next week/In ten days] is [fine/early enough], [so send it the slow way/no express/by normal mail].
[Is it express/Express]? [No/Not needed/No, thanks/Not this time], [the slow way/standard/normal mail].
[The fast way/Overnight mail/A courier] [is not needed/costs too much/is too expensive][./, so no express./, take the slow one.]
[With/Via/Through] [the usual service/the ordinary mail/normal post/the slow van][./, please./, as agreed.]
""",
)
GIFT = (
    """
[My mother/A friend/My sister/Our boss/Grandmother] [has a birthday/turns fifty/gets married], [so it is a gift/and this is the present].
[Nice paper/A red ribbon/A card/Golden paper] [around it/on top/with it], please[./, it is a present.]
[Gift/Present/Gift wrap/As a gift]: [yes/please/sure/wanted/true].
[It will/This will/It should] [surprise/please/delight] [my mother/a friend/my daughter][./ on the birthday./ at the party.]
[Hide/Leave out/Take off] the [price/price tag/bill], [it is a present/it goes to a friend/it is for a birthday].
[Somebody else/A friend/My aunt] will [unwrap/open] it[./, so wrap it nicely./ at the party.]
[Bought/Meant/Chosen] [for a friend/as a present/for the birthday of my brother/for somebody I love].
[Is it a gift/A gift]? [Yes/Sure/Of course/Indeed], [for a birthday/wrap it/it is].
[Write/Please write/Put] [happy birthday/best wishes/with love] on the [card/box/paper].
[They are getting/My parents get/Our host gets] it [from us/as a present/for the wedding].
""",
    """
[I treat myself/We treat ourselves/It is all mine/It is for our own kitchen][./, no present./, nobody else gets it.]
[No paper/No ribbon/No card/No wrapping] [around it/on top/with it], please[./, it stays here.]
[Gift/Present/Gift wrap/As a gift]: [no/not needed/not wanted/false].
[It will/This will/It should] [stay in our house/stand on my desk/replace my old one/be used at work].
[Leave/You can leave/Please leave] the price [on it/on the tag], [it is not a present/I keep it/it is for us].
[I myself/Nobody else/We ourselves] will [unwrap/open/use] it.
[Bought/Meant/Chosen] [for ourselves/for my own home/for the office/for daily work], [not a present/not to give away].
[Is it a gift/A gift]? [No/Not at all/Not this time/No, no], [for me/it stays here/my own].
[Just/Only] [for me/for us/for the office/for work][./, not for anybody's birthday./, so no wrapping.]
[Nobody's birthday/No wedding, no birthday/There is no party], [we just need it/I need it myself].
""",
)
FREE = (
    """
[Guests/Visitors/Friends/All of you] [pay nothing/come for nothing/get in without a ticket/need no money].
[Leave your money/You can leave your purse/No purse needed, leave it] at home.
[Tickets/A ticket/A seat/Each seat] [cost nothing/costs nothing/is a gift/is on the house/will not cost a cent].
[Price/Entry/Admission/Fee/Cost]: [none/nothing/0/free/zero].
[Just/Simply] [walk in/come in/come by/sit down][./, there is nothing to buy./, it does not cost a thing.]
[The city/A sponsor/The host/The club] [pays for everything/pays for all of us/pays for your ticket].
[Nothing/Not a cent/No coin] [is asked/is to be paid/changes hands] [at the door/to get in].
[Is it free/Free]? [Yes/Of course/Completely/Sure], [for all/no ticket/it is].
[Nobody/No guest] [is asked for money/is charged/buys a ticket/needs a ticket].
[All seats/The drinks and the seats/Food and entry] [are a gift/cost nothing/are on us].
""",
    """
[Guests/Visitors/All of you] [pay at the gate/get in with a ticket only/need money to get in/are charged].
[Bring your purse/Take your card with you/Keep some money ready][./, tickets are sold at the door./, there is a price.]
[Tickets/A ticket/A seat/Each seat] [cost ten coins/costs a little/is for sale/has a price/must be bought].
[Price/Entry/Admission/Fee/Cost]: [to be paid/at the door/not free/a small sum/ten coins].
[Nobody/No one] [gets in/walks in/may sit down] without [paying/a paid ticket/a ticket from the shop].
[The guests/You/All of us] [pay for everything/pay for the ticket/share the cost].
[Some money/A small sum/A few coins/A ticket price] [is asked/is to be paid/changes hands] at the door.
[Is it free/Free]? [No/Sadly not/Not quite/No, sorry], [buy a ticket/there is a fee/you pay].
[Everybody/Every guest] [is asked for money/is charged/buys a ticket/needs a paid ticket].
[Seats/Places/Tickets] [can be bought/are sold/are on sale] [at the desk/online/in town][./, none are free.]
""",
)
MARRIED = (
    """
[Husband/Wife/Spouse]: [yes/a teacher/at home/also a doctor].
[The wedding/The marriage/The wedding party] [was in June/took place last spring/is long past/was years ago].
[A husband/A wife] [waits/cooks/sleeps/sits] at home[./ every evening.]
[Wedded/Happily wedded/A married person/Married in church][./ and happy./, two rings.]
[Shares a bed/Shares the house/Has children/Raises three children] with [a husband/a wife].
[Said yes/Tied the knot/Got married/Celebrated a wedding] [in spring/some years ago/on a beach/in church].
[Single/Alone/Unmarried]? [No/Not any more/Not at all], [married/a wedding last year/there is a ring].
[Is it true? Married/Married]? [Yes/Sure/Long ago/Since spring], [with a ring/of course/indeed].
[Met the right one/Found love] and [married/got married/tied the knot].
[No longer/Not] single[, but married/, there was a wedding/ since the wedding].
""",
    """
[Husband/Wife/Spouse]: [none/no/nobody/not yet].
[A wedding/Marriage/The altar] [is not planned/was never an issue/can wait/lies far ahead/is out of sight].
[No husband/No wife/Nobody] [waits/cooks/sleeps/sits] at home[./ in the evening.]
[A single person/Free as a bird/A single with no ring/Without a partner][./ and happy./, not wedded.]
[Sleeps/Lives/Travels/Eats] alone[, with no wife/, with no husband/, still single/, being single].
[Said no/Did not tie the knot/Never tied the knot/Did not marry] [so far/up to now/at all].
[Single/Alone/Unmarried]? [Yes/Still/Indeed/Sure], [no wedding/single/there is no ring].
[Is it true? Married/Married]? [No/Not yet/Not at all/Hardly], [single/of course not/no ring].
[Still looks for/Waits for/Has not met] [the right one/a husband/a wife/true love].
[Prefers to/Wants to/Likes to] [stay/be/remain] [single/unmarried/without a husband/without a wife].
""",
)
RESOLVED = (
    """
[A new part/A new cable/A restart/An update] [did it/solved it/helped/was all it took][./, it works./, case closed.]
[The technician/Our team/Somebody/A colleague] [came/was there/took care of it/replaced the part] and [now it works/fixed it/all is well].
[You can/We can/Please] [close/forget/file] [it/the case/this one][./, it works again./, all is well.]
[State/Current state/Outcome/Result]: [fixed/closed/solved/done/works again].
[Since yesterday/Since noon/Since the repair/By now] [it works/all is well/everything runs/the trouble is gone].
[The user/Everybody/The office] [is happy again/can work again/says thank you/has no more trouble].
[It is/This is] [a thing of the past/history/over/behind us/off the list].
[Is it solved/Solved/Fixed]? [Yes/Sure/Since noon/Luckily], [it works/it is/all done].
[Nobody/No one] [needs to/has to] [come/do anything/look at it] [any more/now], [it works/it is fixed/it is done].
[Repaired/Replaced/Cleaned/Restarted] and [working/running well/as good as new/handed back].
[The error/The trouble/The problem] [is gone/went away/has disappeared/was removed/did not come back].
""",
    """
[A new part/A new cable/A restart/An update] [did not help/changed nothing/was no use/is needed first][./, it goes on.]
[The technician/Our team/Somebody/A colleague] [came/was there/tried everything] [but could not fix it/in vain/without success].
[You cannot/We cannot/Please do not] [close/forget/file] [it/the case/this one][./, it goes on./, it is broken.]
[State/Current state/Outcome/Result]: [open/not fixed/broken/waiting/being worked on].
[To this day/Even now/After all this time/Up to now] [nothing works/it goes on/the trouble is there/nobody helped].
[The user/Everybody/The office] [still waits/cannot work/is still angry/needs help].
[It is/This is] [on the list/far from over/a job for tomorrow/waiting for a part].
[Is it solved/Solved/Fixed]? [No/Not yet/Sadly not/Far from it], [it goes on/we wait/still broken].
[Somebody/A technician] [needs to/has to/must] [come/do something/look at it], [nothing works/it goes on].
[Not repaired/Not replaced/Not cleaned] and [not working/broken/of no use] [so far/today].
[The error/The trouble/The problem] [came back/stays/will not go away/is still with us/keeps coming back].
""",
)
VEGAN = (
    """
[Not one/No] [animal/egg/drop of milk/gram of meat] [is used/was needed/is in the pot].
[No animal/No living thing with eyes/No hen, no cow] [had to give anything/was needed for it/is in it].
[Vegan/For vegans/Vegan dish/Diet]: [yes/sure/of course/vegan/true].
[Pure/Nothing but/Just] [plants/greens/plant food] [in the pot/on the plate/inside].
[The vegans/My vegan sister/Our vegan neighbor] [asked for more/had two plates/ate it all/can have some].
[It does without/It needs no/It is free of] [animal products/milk and eggs/meat, milk and eggs].
[Is it vegan/Vegan]? [Yes/Sure/Completely/Of course], [only plants/it is/all of it].
[Whoever/Everybody who] [lives vegan/eats plants only/says no to milk] [can eat this/may take some/will be happy].
[Plant based/A plant dish/All green, all plants][./, so it is vegan./ from start to end.]
[We count it/You may list it/It stands] [among/with/under] the vegan dishes.
[A dish/A meal/Food] [for vegans/without animal products/from plants alone].
""",
    """
[An animal/A cow/A hen/Milk or meat] [is in the pot/had to give something/is in it][./, so it is not vegan.]
[It does not do without/It needs/It is full of] [animal products/milk and eggs/meat].
[Vegan/For vegans/Vegan dish/Diet]: [no/not at all/sorry, no/not vegan/false].
[Not pure plants/Not just plants/More than plants] [in the pot/on the plate/inside].
[The vegans/My vegan sister/Our vegan neighbor] [asked for something else/had to go hungry/left it/cannot have any].
[Is it vegan/Vegan]? [No/Not quite/Sadly not/Not at all], [there is an animal in it/animal products/milk].
[Whoever/Everybody who] [lives vegan/eats plants only/says no to milk] [must not eat this/needs another dish/should take something else].
[Not plant based/No plant dish/Meat or milk are inside][./, so it is not vegan./, sorry.]
[You cannot list it/It does not stand/We do not count it] [among/with/under] the vegan dishes.
[A dish/A meal/Food] [with animal products/not for vegans/for eaters of meat and milk].
[Animal products/Things from animals] [are in it/went in/are part of it].
""",
)
