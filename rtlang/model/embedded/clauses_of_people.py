"""Clauses of texts about people: a person, and the ticket of somebody with a problem."""

from rtlang.model.embedded.clauses import Clauses
from rtlang.model.embedded.kinds import lines

PERSON = Clauses(
    cores=lines("""
{name} [lives/stays/works/has a house/rents a flat/feels at home] in {city}
{name} [hails from/comes from/moved to/never leaves/knows every street of/belongs to] {city}
{name} calls {city} home
{name} [likes/loves/enjoys/adores/practices/teaches/goes in for/dreams of/cannot stop] {hobby}
{name} [makes ends meet/works/serves/is known/was trained/has a contract/gets paid] as {a_job}
{name} is [{a_job}/{age}/{age} years old/{age} this year]
{name} [smiles/is my friend/says hello/is new here/arrived/has joined us/will speak tonight/needs no introduction]
the {job} {name} [is well known/says hello/is my friend/has joined us/moved here]
[meet/visit/ask for/say hello to/write to/think of/remember/look up/call/here comes/this is/do you know/who knows] {name}
[let me/may I/I want to/we would like to] [present/introduce/describe/praise] {name}
[a person/somebody/a neighbor/a member/a colleague] [named/called/by the name of] {name} [is new/says hello/moved here/joined us]
this [profile/page/card/entry/portrait] [shows/describes/is about/belongs to/was made for] {name}
{city} is [the home of/home to/proud of/the town of/where you meet] {name}
{city} [welcomes/knows/loves/has] {name}
{city} is where {name} [lives/works/has a house/feels at home]
in {city} [lives/works/stays/you meet/we met/everybody knows] {name}
[the people of/everybody in/half of] {city} [knows/know/likes/met] {name}
{hobby} is what {name} [likes/loves/lives for/does for fun/does in the free time]
{hobby} [keeps {name} young/makes {name} happy/takes all the time of {name}/means a lot to {name}/brought {name} many friends]
nothing makes {name} happier than {hobby}
{age} is the age of {name}
{age} candles [stood/burned/were] on the cake of {name}
{age} years have passed since the birth of {name}
{a_job} is what {name} [is/became/always wanted to be]
[they/we/people] [need/found/hired/like/trust/asked for] {a_job} [called/named/like] {name}
I [live/work/have a flat/grew up] in {city}, [says/writes/explains] {name}
I [love/like/enjoy/live for] {hobby}, [says/writes/explains] {name}
I am [{a_job}/{age} years old], [says/writes/explains] {name}
[my name is/I am/it is me,] {name}
[speaking of/looking at/turning to/as for/asked about] {name}, [nobody is better known/we only hear good things/this is a friend]
{first} [comes from/settled in/hails from/left for/feels at home in/is seen all over] {city}
{first} [likes/adores/cares for/thinks of/found happiness in/gives lessons in/has an eye for] {hobby}
{first} [works as/is/became/serves as/wants to stay] {a_job}
{first} [is {age}/has lived {age} years/admits to {age} years/feels young at {age}]
{first} [is well known/is happy/is a good neighbor/says hello/is never bored/leads a busy life]
[the person/our neighbor/the new member/my friend] [is well known/says hello/is never bored/has joined us]
[the profile/the page/this entry/the list] [was updated/is short/tells the rest/is complete]"""),
    adjuncts=lines("""
, [says/writes/explains/and that is/and this is/signed/yours,] {name}
, [the name is/the name being/name:/full name:/person:/known to all as] {name}
[with {name} in mind/now that {name} is here/as {name} joined us/to help {name} along/while {name} waits],
[aged/at/at the age of/at age/being/being already] {age}
[, age/, age:/, the age is/, the age being/, now/, already/, only/, aged] {age}
, {age} years [old/young/old now/old this week]
, [a/a cheerful/a happy/a busy] {age} year old
with {age} years [of life/behind the belt/on the clock]
, who [is/is now/is already/has turned/will stay] {age}[ years old/ this year/ for a while/]
, {age} [by the calendar/on the last birthday/and counting/but still young]
[having turned/having reached/after reaching/since turning/on turning] {age}
, whose [age is/years number/passport shows the age] {age}
[engaged/working/hired/trained/known/registered/paid] as {a_job}
[as/being/by profession/in the role of/in a career as] {a_job}
, [a very busy and well known/the local/the well known/our/the new] {job}
, {a_job} [by profession/by training/by calling/on weekdays/for a living/in daily life]
, who [is/works as/serves as/gets by as/was trained as/became] {a_job}
, whose [job/work/trade/profession/occupation] is that of {a_job}
, [job:/occupation:/work:/profession:/trade:/job title] {job}
[earning money/making money/paying the rent/drawing a wage] as {a_job}
with a [job/contract/diploma/career/place] as {a_job}
in {city}
[from/out of] {city}
[living/based/staying/settled/residing/at home/working] in {city}
[coming/hailing/writing] from {city}
, who [lives in/comes from/has a house in/never left/moved to/stays in/likes to live in] {city}
, whose [home is/house stands/family lives/flat is/address is/mail goes to somebody] in {city}
[, city:/, home town:/, home:/, town:/, lives in/, at home in/, address:] {city}
, [a citizen/a resident/a native/an inhabitant/a child/a friend and citizen] of {city}
[over in/down in/up in/back in/right in the middle of/in the old part of/here in] {city}
with [a house/a home/a flat/an address/a small garden] in {city}
[keen on/devoted to/crazy about/hooked on/interested in/given to/good at/in love with] {hobby}
[enjoying/loving/practicing/living for/looking forward to/spending Sundays on/doing] {hobby}
, who [likes/loves/enjoys/adores/lives for/goes in for/has time for/talks only of/cares a lot about] {hobby}
, whose [hobby/passion/pastime/favorite pastime/great love/joy] is {hobby}
[, hobby:/, interests:/, free time:/, likes:/, loves/, hobby/, favorite pastime] {hobby}
with [a passion for/a love of/a taste for/a weakness for/time for/a talent for] {hobby}
, [a friend/a fan/a lover/a student/a master/no enemy] of {hobby}
, for whom {hobby} [is everything/means everything/is pure joy/is the best part of the day/comes first]
[between work and/after an hour of/thanks to/when it comes to/not counting] {hobby}
, [on Sundays/in private/when free/off duty/at night] [seen at/all for/given to/devoted to] {hobby}
, {a_job} [from/in/based in/out of] {city}
, {a_job} [of {age}/aged {age}/who is {age}]
, a {age} year old {job}
, a {age} year old [from/living in] {city}
, {a_job} [with a passion for/crazy about/who enjoys/who prefers] {hobby}
torn between work as {a_job} and {hobby}
[after moving to/on coming to] {city} [at {age}/as {a_job}]
, whose [job is {job}/trade is {job}] and whose [hobby/passion] is {hobby}"""),
)

TICKET = Clauses(
    cores=lines("""
{reporter} [reports/says/writes/notes/tells us/claims/noticed/is angry] that [the/a/one] {device} {problem}
{reporter} [says/writes/reports/noticed] that it {problem}
{reporter} [needs/wants/asks for/is waiting for/calls for/hopes for] [help/a technician/support/a repair/an answer]
{reporter} has [trouble/a problem/no luck] with [a/the] {device}
{reporter} [sits/works/waits/is found/needs help] in room {room}
[help/call/visit/answer/support/contact/please help/please call] {reporter}
the {device} of {reporter} [{problem}/is broken/has to be repaired]
[the old/the new/this/that/the same/no wonder that the] {device} {problem}
it {problem}
[a/one/the old/the new] {device} [is broken/needs a repair/makes trouble/has to be checked/worries {reporter}/makes {reporter} angry]
[ticket/case/report/entry] {ticket} [is open/was opened/needs an answer/came in/is waiting/is about a {device}/belongs to {reporter}]
[ticket/case/report] {ticket} [says that the {device}/is open because the {device}/tells us that a {device}] {problem}
{ticket} is the number of the [ticket/case/report]
room {room} [has/holds/hosts/is home to] a {device} that {problem}
room {room} [needs help/has trouble/called/is where {reporter} works/is the office of {reporter}/was named as the place]
in room {room} [sits/works/waits/you meet] {reporter}
in room {room} [stands/is/we have] a {device} that {problem}
[please/kindly/can somebody/could you/will you/who can] [fix/check/repair/replace/look at] [that/this/the old/my] {device}
[please go to/go to/visit/look into/take your tools to/walk over to] room {room}
[take/work on/open/start with/please read/have a look at/close] [ticket/case] {ticket}
[my/our] {device} {problem}
I [have to tell you/noticed/fear/am sorry to say] that my {device} {problem}
why is it that [my/the/this] {device} {problem}
{priority} is the priority [of ticket {ticket}/of the case/that {reporter} asked for]
{Priority} priority [was given/goes] to [ticket/case/entry] {ticket}
a {priority} priority [ticket/case/report] [came in/arrived/is on the desk/came from {reporter}]
we [got/received/opened/wrote/have/closed] [ticket/case/report] {ticket}
we [heard/had a call/had a letter/got a message/received mail] from {reporter}
there is [trouble/a problem/something wrong] with [a/the] {device}
[the ticket/the case/a report/this problem] [is open/came in/needs an answer/is waiting/is new]"""),
    adjuncts=lines("""
[according to/on behalf of/thanks to a call from/for] {reporter}
, [says/writes/reports/notes/signed/reports our user] {reporter}
, [reported/written/sent/noticed/described] by {reporter}
as {reporter} [says/tells us/noticed/writes/saw]
, [reporter:/user:/name of the user:/the user being/the user is/contact:] {reporter}
, a [report/message/call/letter] from {reporter}
, [which {reporter} saw first/and {reporter} is waiting/and {reporter} needs help/so {reporter} cannot work]
[in ticket/under ticket/under the ticket number/as ticket/as case/in case/as report] {ticket}
, [ticket/case/ticket number/case number/see ticket/see case/ticket:/case no.] {ticket}
[filed/booked/recorded/listed/registered/kept] [under/as/under case/under ticket/as ticket] {ticket}
with the [ticket number/case number/reference/case reference] {ticket}
, [the reference being/the ticket being/with the case number/the ticket is/reference:] {ticket}
[according to/as we read in/as said in/to quote/by way of] [ticket/case] {ticket}
, which [is ticket/is now case/became ticket/we call case/has the ticket number] {ticket}
[in/from/inside/over in/just in] room {room}
, [room/room number/the room is/the room being/room:/office/location: room/place: room] {room}
[sitting/working/waiting/standing/placed/located/staying] in [room/office] {room}
, whose [desk/office/place/work] is in room {room}
[behind the door of/on the desk in/on the wall of/near the window of] room {room}
, which [is in/stands in/belongs to/was put into/we saw in] room {room}
[on entering/on a visit to/looking into/coming from/calling from] room {room}
[carrying/at/on/given/under] {priority} priority
, [priority level:/prio/prio:/urgency:/the priority is/the priority being/its priority] {priority}
, [marked/rated/flagged/classed/ranked/judged] {priority} [in/by/as to] priority
[, a case of/, a matter of/, all of/, given/, having] {priority} priority
, whose [priority/urgency] is {priority}
on the {priority} priority [list/pile]
, [and the priority is/so the priority stays/which makes the priority] {priority}
[because of/about/due to/over/concerning/on account of] [a/the/a broken/one] {device}
, [device:/the device is a/the device being a/machine:/equipment:/a matter of the] {device}
[using/sitting next to/holding/angry with/busy with/waiting for] [a/the] {device}
, [all because of/and that is/and blames] the {device}
[because/since/as/now that/although/whenever] it {problem}
, [problem:/trouble:/issue:/error:/the trouble is that/the problem being that/and] it {problem}
[saying/noting/claiming/with the message/with the complaint/on the grounds/with the news] that it {problem}
, which means that it {problem}
[because/since/as/now that] [the/a/one/this] {device} {problem}
[about/with/because of/next to/due to] a {device} that {problem}
, where [a/one] {device} {problem}
, [problem:/trouble:/issue:] [the/a] {device} {problem}
, [ticket/case] {ticket} [of/at] {priority} priority
, [a/our] user in room {room}
, who [sits/works/waits] in room {room} [with/next to] a {device}
by {reporter} [in/from] room {room}
, whose {device} {problem}"""),
)
