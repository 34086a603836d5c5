"""More ways to tell the fields that are true or false: sentences of yes and sentences of no, a line each."""

URGENT = (
    """
[Somebody/My boss/The customer] [waits/sits and waits/keeps asking] for [this/it] [already/impatiently/right now].
[We need/I need/They need] [this/it/an answer] [today/this morning/within the hour/before the evening/by tonight].
[Put/Move] [this/it] [at the top of/to the front of/first on] [the/your] [list/pile/queue][./, please.]
[Nothing/No other thing] [is more/could be more] [pressing/important][./ today./ right now.]
[Do not/Never] [wait/let it lie/put it off/leave it for tomorrow][./, not even an hour./, hurry!]
[The clock is ticking/We are running out of time/We are late already/There is no time to lose][./!]
[Everything else/All the rest] [can wait/comes later], [but not this/this cannot/this comes first].
[A rush/A very pressing/A hot/An extremely urgent] [matter/request/thing].
[As fast as/As quickly as/As soon as] you [can/possibly can], [please/this presses].
[Without/There must be no] [delay/any delay/waiting][./, please./, it presses.]
[Tomorrow/Next week/An hour from now] [is/would be/will be] too late.
[We are/I am] in a [great/terrible/big] hurry[./ with this./ today.]
[Urgency/How urgent]: [high/very high/extreme/very].
[It presses/It is pressing/Speed matters/It has to go fast/It must be quick][./!]
[Stop everything/Leave your lunch/Run], [this comes first/this is an emergency/it burns].
[This one/It] [has to be/must be/should be] [done/handled/dealt with] [today/first/immediately/right away].
[Immediately/Right away/At once/Instantly], [please/if you can/not later].
[Is it urgent/Urgent]? [Yes/Very/Extremely/Of course/Absolutely], [it is/and how/very much so].
""",
    """
[Nobody/No one] [waits/asks/calls] for [this/it][./ yet./ today.]
[We need/I need/They need] [this/it] [some day/only next year/in a few months/by the end of the season].
[Put/Move] [this/it] [at the bottom of/to the end of/last on] [the/your] [list/pile/queue][./, please.]
[Other things/Many things/All other cases] are [more pressing/more important][./ today./ right now.]
[Do it/Handle this/Look at it] [when/after/once] [you are free/all the rest is done/you find the time/things are quiet].
[The clock is not ticking/We are early/There are weeks left/The deadline is far away][./.]
[Everything else/All the rest] [comes first/is more important], [this can wait/then comes this].
[A quiet/A slow/An everyday/An ordinary] [matter/request], [nothing pressing/no hurry/not urgent].
[As slowly as you like/At your own speed/In your own time/When it suits you][./, please./, no pressure.]
[A delay/Some delay/Waiting] [is fine/does no harm/is no problem/would not hurt].
[Tomorrow/Next week/A month from now] [is fine/is good enough/would be fine] [too/as well].
[We are/I am/They are] not in [a/any/such a] hurry[./ with this./ at all.]
[Urgency/How urgent]: [low/very low/none/not at all].
[It does not press/Nothing presses/Speed does not matter/It may go slowly/It need not be quick][./.]
[Finish/Have/Enjoy] your [lunch/coffee/holidays/other work] first[./, this is not an emergency./, then do this.]
[This one/It] [does not have to be/need not be] [done/handled/dealt with] [today/first/immediately/right away].
[Not immediately/Not today/Sooner or later/At some point], [no pressure/no stress/that is all].
[Is it urgent/Urgent]? [No/Not really/Hardly/Not at all], [it is not/it can wait/not this time].
""",
)
URGENT_OF_CASE = (
    """
[Nobody/No doctor] should [wait/lose a minute/hesitate][./ with this./ here.]
[The patient/This person] [is in danger/is getting worse/needs help now/could not wait/must not wait].
[An ambulance/The ambulance/Emergency help] [is on the way/was called/had to come].
[Urgency/How urgent]: [high/very high/extreme/very].
[Today/Within the hour/Tonight], not [tomorrow/next week/later].
[Tomorrow/Next week/An hour from now] [is/would be/will be] too late.
[Put/Move] [this/the patient] [at the top of/to the front of/first on] the [list/queue][./, please.]
[Immediate/Quick/Instant/Fast] [help/treatment/care/action] is [needed/necessary/required].
[The clock is ticking/We are running out of time/There is no time to lose][./!]
[It presses/It is pressing/It is serious and cannot wait/All others have to wait][./!]
[Is it urgent/Urgent]? [Yes/Very/Extremely/Absolutely], [it is/and how/very much so].
[Without delay/Right away/Immediately/At once], [please/said the nurse/not later].
""",
    """
[Other patients/Others/All others] [may go/come/can be seen] first.
[The patient/This person] [is in no danger/is stable/can wait/does not mind waiting/may come back later].
[No ambulance/No emergency/Nothing dangerous/Nothing serious] [was needed/is needed here/here].
[Urgency/How urgent]: [low/very low/none/not at all].
[It will do/It is enough] to [come back/look at it again/check it] [next month/in the summer/some time].
[Put/Move] [this/the patient] [at the bottom of/to the end of/last on] the [list/queue][./, please.]
[A routine/An ordinary/An everyday] [case/check-up/matter][./, nothing more.]
[It does not press/Nothing presses/Waiting does no harm/A delay is fine][./.]
[Is it urgent/Urgent]? [No/Not really/Hardly/Not at all], [it is not/it can wait/says the nurse].
[Sooner or later/At some point/When there is room], [no pressure/no stress/that is enough].
[Tomorrow/Next week/A month from now] [is fine/is good enough/would be fine] [too/as well].
[The clock is not ticking/There are weeks left/We can take it slowly][./.]
""",
)
WINDOW_SEAT = (
    """
[The clouds/The wings/The mountains] [can be seen/are in sight/will pass by] [from the seat/from that place].
[Wanted/Asked for/Chosen/Given]: [the window/a window/a place by the window].
[The wall and the window are/The window is] [on one side/to the left/to the right/close to the shoulder].
[Lean your head/You can lean] [against/on] the window[./ and sleep.]
[He/She/The traveller/The guest] [got/has/asked for and got] [the window/a window/a place by the window].
[Seat type/Kind of seat/Position]: [window/right at the window/by the window].
[By the window/Next to the window/Beside the window], [as always/as wished/not on the aisle].
[Nobody/No one] sits between [you/the seat] and the window.
[A good/A wonderful/A free] view [over the wing/of the sky/of the clouds/from up there].
[Is it a window seat/At the window]? [Yes/Of course/Sure/It is], [enjoy the view/indeed/luckily].
[The row has a window/There is a window right there], [and it is yours/beside the seat].
[You will see/We see/One sees] [the sea/the clouds/the land/the lights] [from/out of] [the/your] window.
""",
    """
[Nothing/No clouds/No mountains/Not much] [can be seen/is in sight] [from the seat/from that place].
[Wanted/Chosen/Given]: [the aisle/the middle/a place on the aisle].
[The aisle is/People walk by] [on one side/to the left/to the right/close to the shoulder].
[Stretch your legs/You can stretch your legs] [into/in] the aisle.
[He/She/The traveller/The guest] [got/has/sits on] [the aisle/the middle/a place on the aisle].
[Seat type/Kind of seat/Position]: [aisle/middle/on the aisle].
[Between two others/In the middle of the row/Right on the aisle], [as always/sadly/not by the window].
[Somebody else/Another passenger/A stranger] sits [between you and/by/right beside] the window.
[Without a view/With no view/Without any window][./, sorry./, only the aisle.]
[Is it a window seat/At the window]? [No/Sadly not/Not this time/It is not], [on the aisle/sorry/all taken].
[The row has no window/There is a wall instead of a window][./ there./, sadly.]
[You will not see/We do not see/One cannot see] [the sea/the clouds/the land/the lights] [from/out of] [it/there].
""",
)
BREAKFAST = (
    """
[You wake up/Guests wake up/Wake up] to [fresh bread/a full table/coffee and eggs][ for free/, all included/ at no charge].
[Guests/You] [eat/have breakfast/get their breakfast] [for nothing/free of charge/without paying more] [in the morning/downstairs].
[Fresh bread/A buffet/A full table/Coffee] [is waiting/waits/is set out] every morning[, paid for already/ at no cost/ for free].
[The sum/The deal/The offer/The booking] [has/includes/comes with/contains] [breakfast/a morning meal/breakfast for all].
[Meals/Meal plan/Board/Extras]: [breakfast/bed and breakfast/breakfast is in/morning meal].
[Bed and breakfast/Half board with breakfast/A room with breakfast][./, as booked./, please.]
[Nobody/No guest] [pays/has to pay] [extra for/for] [breakfast/the morning meal].
[Is breakfast in it/And breakfast/Breakfast too]? [Yes/Of course/Sure/It is], [no extra cost/every day/indeed].
[Breakfast/The morning meal] [belongs to/is already in/goes with/is part of] the [deal/booking/offer].
[You need not/No need to/You do not have to] [buy/pay for/bring] [breakfast/coffee and bread][./, it is there.]
[Morning coffee and eggs/Breakfast for everybody/Bread, eggs and coffee]: [all in/paid already/a gift of the house].
[We add/They add/The house adds] breakfast [for free/at no cost/without a bill].
""",
    """
[You wake up/Guests wake up/Wake up] to [an empty table/a closed kitchen/no meal at all].
[Guests/You] [eat/have breakfast/get breakfast] [somewhere else/in a cafe nearby/elsewhere/in town].
[Bring your own coffee/Buy your own bread/Eat before you come/Go to the bakery][./, the house serves no meal./, no meal here.]
[The sum/The deal/The offer/The booking] [has no/lacks/leaves out/is without] [breakfast/meals/any meal].
[Meals/Meal plan/Board/Extras]: [none/no meals/room only/nothing].
[A bed and nothing more/A room without meals/Only a place to sleep][./, as booked./, sorry.]
[Everybody/Every guest] [pays/has to pay] [extra for/for] [breakfast/the morning meal].
[Is breakfast in it/And breakfast/Breakfast too]? [No/Sadly not/Not here/It is not], [that costs more/buy it in town/sorry].
[Breakfast/The morning meal] [comes on top/is billed apart/is on another bill/is for other guests/is sold downstairs].
[You need to/You have to/You must] [buy/pay for/bring] [breakfast/coffee and bread][./ yourself.]
[Nothing to eat/No coffee, no bread/No eggs and no bread] [in the morning/is served/comes with it].
[The kitchen/The breakfast room] [is closed/stays shut/opens for lunch only].
""",
)
REMOTE = (
    """
[Stay/You may stay/You can stay] at home [and work/with your laptop/all week][./, we do not mind.]
[Nobody/No one] [has to come/needs to come/must drive/has to sit] [to/in] [an/the] office.
[All/Most] of [us/our people/the team] [work/sit] [at home/on the sofa/in the kitchen/far apart].
[Workplace/Place of work/Office days/Mode]: [at home/anywhere/none, all online/remote].
[A laptop and a good line/An internet connection/A quiet room at home] [is/are] all you need to work.
[Meetings/All talks/All meetings] [are/take place] [online/on the screen/by video][./, nobody travels.]
[From the beach/From any country/From your garden/From your kitchen], [work where you like/it is up to you/as you please].
[No commute/No daily trip to town/No driving to a desk][, you do the job from home./: you work where you live.]
[Is it remote/Remote/Can I stay at home]? [Yes/Of course/Sure/You can], [all week/anywhere/always].
[The work/The job/This job] [can be/may be/is] [done/carried out] [at home/online/from anywhere/from a distance].
[We have/There is/The firm has] no office [at all/any more/for you to visit], [all is online/everyone is at home].
[Distance/Where you sit/Your address] [does not matter/is not important/plays no role][./ to us.]
""",
    """
[Do not stay/You may not stay/You cannot stay] at home [to work/with your laptop][./, we want to see you.]
[Everyone/Each of us/Every worker] [has to come/needs to come/must drive/comes] to [an/the] office.
[All/Most] of [us/our people/the team] [work/sit] [side by side/in one room/at one long table/next door].
[Workplace/Place of work/Mode]: [in the office/on site/at our desk/not at home].
[A desk in our house/A place in the office/A chair next to ours] [is/will be] [where you work/waiting every day].
[Meetings/All talks/All meetings] [are/take place] [in person/in our rooms/face to face][./, not online.]
[From Monday to Friday/Each day/Five days a week] [in the office/at your desk here/on site].
[A daily trip/A commute/A trip to work each day] [is needed/is part of it/belongs to the job].
[Is it remote/Remote/Can I stay at home]? [No/Sadly not/Not with us/You cannot], [come in/we work on site/sorry].
[The work/The job/This job] [cannot be/may not be/is not] [done/carried out] [at home/online/from anywhere/from a distance].
[We have/There is/The firm has] no [home office/online jobs/work from a distance].
[Distance/Where you live/Your address] [matters/is important][./, you come here daily./, you come in each day.]
""",
)
PAID = (
    """
[The money/The sum/The transfer] [arrived/came/reached us/left our account] [yesterday/on Monday/last week/in time].
[Nobody/No one] [owes/has to pay] [anything/a cent] [any more/now].
[The bill/The invoice/This one] [is closed/is done/is off the list/was cleared/is settled/went through].
[Balance/Open amount/Still to pay/Amount left]: [zero/nothing/none/0 left].
[Received/Cleared/Done/Money received/Transfer received][./ with thanks./, thank you.]
[Thank you for/Many thanks for/We got/We have received] [your payment/the money/the transfer/the full sum].
[Payment/Payment status/State of payment]: [done/received/complete/made].
[The bank/Our account/The books] [shows/show/confirms] [the payment/that the money came/that all was paid].
[You can/Please/We can] [forget/put away/file/close] [it/the bill/this one], [the money is here/all is settled/it is done].
[Somebody/My boss/The office/She/He] [has paid/paid/transferred the money/settled the bill] [in cash/by card/long ago/this morning].
[Is it paid/Paid]? [Yes/Of course/Since Monday/In full], [it is/done/all of it].
[Everything was/All has been/The whole sum was] [transferred/paid/settled/handed over] [weeks ago/yesterday/before the due date].
""",
    """
[The money/The sum/The transfer] [did not arrive/never came/has not reached us/got stuck/is not here].
[Somebody/The customer/We/They] still [owes/owe/must pay/have to pay] [all of it/the whole sum/everything].
[The bill/The invoice/This one] [is still open/waits for payment/is on the list/was not cleared/is not settled/lies unpaid].
[Balance/Open amount/Still to pay/Amount left]: [all of it/the whole sum/everything].
[Nothing received/Not cleared/No money received/No transfer yet][./, sadly./, please hurry.]
[Please send/Please transfer/We miss/We ask you for] [your payment/the money/the full sum][./ soon./ at last.]
[Payment/Payment status/State of payment]: [open/none/not made/pending/to come].
[The bank/Our account/The books] [shows/show/has] [no payment/nothing yet/no trace of the money].
[Do not/Never/We cannot] [forget/put away/file/close] [it/the bill/this one], [the money is not here/it is open/it waits].
[Nobody/No one] [has paid/paid/transferred the money/settled the bill] [so far/up to now/yet].
[Is it paid/Paid]? [No/Not yet/Not at all/Sadly not], [it is not/still open/we wait].
[Nothing was/Not a cent has been/None of it was] [transferred/paid/settled/handed over].
[A second/A third/Another/One more] [reminder/letter/warning] [went out/was sent/is on the way][./, no money came.]
""",
)
IN_STOCK = (
    """
[The shelf is/Our shelves are/The store room is/The boxes are] [full/full of them/well filled].
[Order now/Come today/Buy it now], [we have it here/we have many/it lies ready/it leaves today].
[Availability/Available/In the shop]: [yes/now/at once/right away/many].
[No need to/You do not have to/Nobody has to] wait[, we have it/, it is here/ for it, we have plenty].
[A hundred/Ten/Lots/Dozens/Several] of them [lie/are/wait] [here/in our store/on the shelf/in the back].
[Delivery/It leaves/It goes out/We pack it] [today/tomorrow/within a day/at once], [we have enough/it is there].
[The supply/Our supply/The stock] is [large/good/full/big enough].
[Is it there/Any left/Do you have it]? [Yes/Sure/Plenty/Of course], [come by/many/take one].
[Everybody/Every customer/Anybody] [can get/gets/may have] one [now/today/this minute].
[We just got/A van brought/Today came/They sent us] [a new load/many new ones/fresh ones/a full crate][./ of them.]
[You find it/It lies/It stands/It waits] [in the shop/on the shelf/in our window/in the store][./, come and get it.]
""",
    """
[The store room is/Our boxes are/The crates are] [empty/quite empty/bare].
[Do not come today/It makes no sense to come/Do not order now], [we have none/it is gone/nothing is left].
[Availability/Available/In the shop]: [no/none/not now/later/zero].
[You need to/You have to/Everybody has to] wait[, we have none/, it is gone/ for it, they are all gone].
[The last one/The last piece/The last of them/All we had] [was sold/went out/is gone/left the shop][./ yesterday./ today.]
[Delivery/It leaves/It comes back/We get it] [next month/in some weeks/not before summer], [we have none/all are gone].
[The supply/Our supply] is [used up/gone/exhausted/at zero].
[Is it there/Any left/Do you have it]? [No/Sorry/None/Sadly not], [come later/all gone/try next month].
[Nobody/No customer] [can get/gets/may have] one [now/today/this week].
[We wait for/We ordered/They promised us] [a new load/new ones/more of them][./, we have none now.]
[You do not find it/It does not lie/It is no longer] [in the shop/on the shelf/in our window/in the store].
""",
)
FURNISHED = (
    """
[Tables, chairs, a bed/A sofa and a bed/Cupboards and lamps/A full kitchen and beds] [wait for you/stand ready/are part of it].
[Come/Move in/Arrive] with [a suitcase/one bag/your clothes] [only/and nothing else][./, the rest is there.]
[Leave/You can leave/You may leave] [your own bed/your sofa/your tables] [behind/with your parents/where they are].
[Furniture/Beds and tables/Equipment]: [yes/included/there/complete/all in].
[The owner/The landlord/Somebody] [leaves/left/put in] [the furniture/a bed, a table and chairs/everything one needs].
[Nothing/No table/No chair] [has to be bought/is missing/must be carried up].
[Is it furnished/Furnished/Any furniture]? [Yes/Of course/Completely/All of it], [it is/with beds/move in].
[A bed/A sofa/A table] [stands/is] in [each/every] room.
[Equipped/Fitted/Filled] with [furniture/beds and chairs/all you need to live].
[The kitchen has a table/There are wardrobes/You find a sofa], [a bed/beds/chairs] and [lamps/a desk/shelves].
""",
    """
[No tables, no chairs/No sofa and no bed/Neither bed nor table/Nothing but walls] [waits for you/stands there/is part of it].
[Come/Move in/Arrive] with [a big van/your own bed/all your things][./, nothing is there./, the rooms are bare.]
[Take/Please take/You should take] [your own bed/your sofa/your tables] [with you/along].
[Furniture/Beds and tables/Equipment]: [no/not included/none/nothing/missing].
[The owner/The landlord/Somebody] [takes away/took out/sold] [the furniture/all beds and chairs/everything].
[Everything/Every table/Every chair] [has to be bought/is missing/must be carried up].
[Is it furnished/Furnished/Any furniture]? [No/Sadly not/Not at all/None], [it is not/empty rooms/bring yours].
[Not a bed/No sofa/No table] [stands/is] in [any/a single] room.
[Let/Rented out/Offered] [empty/bare/without furniture/as it is, without a chair].
[Bare walls/Empty floors/Empty rooms] [are what you get/wait for you/and nothing in them].
""",
)
PETS = (
    """
[Bring/You can bring/Take along] [your dog/the cat/your rabbit/your birds][./, we do not mind./, there is a garden.]
[The neighbors have/The owner has/Everybody here has] [a dog/two cats/animals] [too/as well][./, so bring yours.]
[Nobody minds/We do not mind/The owner does not mind] [a dog/cats/animals/a pet].
[Animals/Pets/Dogs/Cats]: [yes/allowed/no problem/gladly/sure].
[Four legs/Your dog/A cat on the sofa] [is/are] [no problem/fine with us/quite all right].
[Is a dog/Are cats/Are animals] allowed? [Yes/Of course/Sure/Gladly].
[There is/You find/We have] [a garden/room/a meadow] for [your dog/dogs/your animals].
[The contract/The house rules/The rules] [allow/permit/let you have] [animals/a dog/pets/a cat].
[Friends of animals/People with dogs/Owners of cats] [may apply/can move in/are happy here].
[Keep/Have] [a cat/a dog/as many animals as you like], [nobody will complain/it is allowed/we like them].
""",
    """
[Do not bring/You cannot bring/Leave behind] [your dog/the cat/your rabbit/your birds][./, we are sorry./, please.]
[The neighbors fear/The owner fears/Somebody here fears] [dogs/animals][./, so they must not come.]
[The owner minds/We do mind/The neighbors would not like] [a dog/cats/animals/a pet].
[Animals/Pets/Dogs/Cats]: [no/not allowed/forbidden/none/sorry, no].
[Four legs/Your dog/A cat on the sofa] [is/are] [not possible/a problem for us/against the rules].
[Is a dog/Are cats/Are animals] allowed? [No/Sadly not/Sorry/Not here].
[There is no room/We have no place/This is no house] for [a dog/dogs/animals/pets].
[The contract/The house rules/The rules] [forbid/rule out/do not permit] [animals/dogs/pets/cats].
[Only people/Only tenants] without [animals/dogs and cats/pets/a pet][, please/ may apply/ can move in].
[Find a new home for/Part with/Say goodbye to] your [cat/dog/animals] [first/before you come].
""",
)
