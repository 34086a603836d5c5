"""Kinds of records about people: a person, and the ticket of somebody with a problem."""

from rtlang.model.embedded import clauses_more_of_life
from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.clauses_of_people import PERSON, TICKET
from rtlang.model.embedded.extras import EMAIL, PHONE, URGENT, Record
from rtlang.model.embedded.extras_more import EMPLOYER, MARRIED, RESOLVED
from rtlang.model.embedded.kinds import Drawn, Kind, lines
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.text_files import lines_of
from rtlang.model.embedded.words import Draw, article


def draw_person(draw: Draw) -> Drawn:
    name, job = draw.full_name(), draw.slot(lex.JOBS, lex.HELD_JOBS)
    record: Record = {
        "name": name, "age": draw.number(18, 89), "job": job, "city": draw.place_name(),
        "hobby": draw.slot(lex.HOBBIES, lex.HELD_HOBBIES),
    }  # fmt: skip
    first = name.split()[-1] if "." in name else name.split()[0]
    return record, {"first": first, "a_job": article(job)}


person = Kind(
    "person", words("person|profile|introduction", "|"), draw_person,
    lines("""
{name} is a {age} year old {job} [from/in/based in/living in] {city} who [enjoys/likes/loves/is mad about] {hobby}.
My name is {name}. I am {age} and I [work as/am/was trained as/have a job as] {a_job} in {city}. I [like/love/enjoy/am fond of] {hobby}.
[Meet/This is/Say hello to/Let me introduce] {name}, {a_job} [living in/from/based in/who lives in] {city}. At {age}, {first} still \
[loves/enjoys/likes] {hobby}.
In {city} there is {a_job} [called/named/by the name of] {name}, aged {age}, whose [hobby is/favorite hobby is/evenings are full \
of/heart beats for] {hobby}.
{name} lives in {city}. [Job/Occupation/Work/Profession]: {job}. Age: {age}. [Free time/Hobby/Interest/Likes]: {hobby}.
{name}, {age}, [is/works as/is employed as] {a_job} in {city} and spends the [weekends/evenings/holidays] on {hobby}.
{name} ({age}) [works as/is/has been hired as/earns money as] {a_job} in {city}. [Hobby/Interest/Free time]: {hobby}.
This is {name} from {city}. After work as {a_job}, {first} [goes in for/likes/turns to/relaxes with] {hobby}. Age: {age}.
I met {name} in {city}. {first} is {a_job}, {age} years [old/of age], and [interested in/fond of/mad about] {hobby}.
At the age of {age}, {name} moved to {city} to work as {a_job}. {first} has always [been fond of/loved/liked/enjoyed] {hobby}.
[Hi!/Hello!/Hey there,/Good day,] I'm {name}, {age} years old. I live in {city}, my job is {job} and my hobby is {hobby}.
Our new [colleague/neighbor/member/friend] {name} is {a_job}. {first} is {age}, comes from {city} and [likes/loves/enjoys] {hobby}.
{city} is the home of {name}, {a_job} [of {age} years/aged {age}]. The [hobby/favorite hobby/passion] of {first} is {hobby}.
Name: {name}, age: {age}, lives in {city}, works as {job}, [likes/hobby/interest:/loves] {hobby}
People in {city} know {name} as {a_job}. {first} turned {age} this [year/week/month] and [enjoys/likes/loves] {hobby}.
{name} in {city} [loves/likes/enjoys/never gets tired of] {hobby}, [works as/earns money as/is] {a_job} and is {age}[ years old/].
{name} whoa, [what a life/I am impressed/how nice]! {age} years old, {a_job} in {city}, and [all/every] free [time/hour] goes to {hobby}.
{name} Age {age} Job {job} City {city} Hobby {hobby}
{name} has [lived/worked/been] in {city} for long. [By trade/By profession/By day] {first} is {a_job}, [in the evenings/at night/after \
work] it is {hobby}. {first} is {age}.
[Age/Years]: {age}[,/;/.] [hobby/interest/likes]: {hobby}[,/;/.] [city/town/home]: {city}[,/;/.] [job/work/occupation/profession]: \
{job}[,/;/.] name: {name}
{hobby} is the [hobby/passion/great love] of {name}, who is {age} and works in {city} as {a_job}.
[At home/Living/Based] in {city}, {name} is {a_job}, [now/today] {age} years [old/of age], and [spends the weekends on/is crazy \
about/has time for] {hobby}.
{first} loves {hobby}. {first} is also {a_job}. The full name is {name}, the age is {age}, the [city/home town/place] is {city}.
[Who is {name}?/Do you know {name}?/About {name}:] {a_job} in {city}, {age} years old, likes {hobby}.
They [found/hired/met] {a_job} in {city}: {name}, {age}, [fond of/who likes/who loves/interested in] {hobby}.
The {job} {name} [lives/works/stays] in {city}. {first} is {age} and [busy with/fond of/mad about] {hobby}.
[When I am not at work/On weekends/In my free time], I go in for {hobby}. My work? I am {a_job}. I'm {age}, I live in {city}, and people \
call me {name}.
I [became/am/was hired as] {a_job} in {city}, I am {age} years old and I [love/like/enjoy] {hobby}. [Best wishes/Greetings/Regards], \
{name}
{age} years ago {name} was born. Now {first} is {a_job}, [lives in/calls home/is at home in] {city} and [enjoys/likes] {hobby}.
{city}: {name} ({age}), {job}, {hobby}
{name} - {age} - {job} - {city} - {hobby}
Ask {name} about {hobby}! I hear that {first} is {a_job}, {age} years old, and [comes from/lives in/is from] {city}.
[Everybody/Anyone] who [asks for/looks for] {a_job} in {city} finds {name}. {first}, {age}, has one [hobby/passion]: {hobby}.
{name} says {hobby} [keeps you young/is the best hobby/is good for you]. At {age}, {first} still works as {a_job} in \
{city}.""") + lines_of("person"),
    lines("""
Born {age} years ago, {name} earns a living as {a_job} in {city}; {hobby} fills the evenings.
Ask anyone in {city} about {name}: {age} years of age, {a_job} by trade, and mad about {hobby}.
When not busy with {hobby}, {name} ({age}) can be found in {city}, employed as {a_job}.
Fond of {hobby} and {age} by now, {name} is employed in {city}; the profession is {job}.
{hobby} after work, {a_job} by day: that is {name} of {city}, who turned {age}."""),
    (MARRIED, EMAIL, PHONE, EMPLOYER),
    sentences=lines("""
[The name is/The name of this person is/This is/Meet/We are talking about/Let me introduce] {name}.
[Name/Full name/Person]: {name}[./]
{name} is [the name/a good friend/new here/our neighbor/the person I mean].
[Do you know/Have you met/Who is] {name}?
[People/Friends/We] [found/met/saw] {name} [last year/long ago/at work].
[People/Friends/We] [know/like/talk about] {name}.
{first} is {age}[ years old/ years of age/].
[Age/Years/Years of age]: {age}[./]
[The age is/The age of {first} is/Aged/At the age of] {age}.
{first} [turned/turns/became] {age} this [year/week/month].
{first} came into the world {age} years ago.
{age} years [old/of age].
{first} [works as/is/makes a living as/earns money as/is employed as/has a job as] {a_job}.
[Job/Work/Occupation/Profession/Trade]: {job}[./]
[By trade/By profession/By day/At work], {first} is {a_job}.
The [job/occupation/profession/trade] is {job}.
[Employed as/Works as/Hired as] {a_job}.
{first} [lives in/comes from/is from/is based in/is at home in/is to be found in] {city}.
[City/Town/Home/Home town/Lives in]: {city}[./]
[The city is/The home is in/The house is in/The home of {first} is] {city}.
[At home/Living/Based] in {city}.
Anyone in {city} can [tell you where the house is/show you the house/find the house].
{first} [likes/loves/enjoys/goes in for/is mad about/is fond of/is interested in] {hobby}.
[Hobby/Interest/Free time/Likes]: {hobby}[./]
The [hobby/favorite hobby/passion] [is/of {first} is] {hobby}.
[In the evenings/After work/On weekends/In the free time], {first} is busy with {hobby}.
{hobby} fills the [evenings/weekends/free time].
{first} [spends the weekends on/relaxes with/never gets tired of] {hobby}.
{name} is {age} years old.
{name} ({age})[ is my friend/ moved here/ is new/].
{name} [works as/is] {a_job}.
{name} in {city} [is well known/says hello/is a friend of mine].
{name} [loves/likes/enjoys] {hobby}.
{name} [lives in/comes from/is from] {city}.
{first} is {a_job} in {city}.
{first} [is {age} and likes/turned {age} and still loves] {hobby}.
{first} is {age} and [works as/is employed as] {a_job}.
{first} [is {a_job} and/works as {a_job} but] [loves/likes/enjoys] {hobby}.
[At {age},/With {age} years,] {first} [still lives/moved to live/has a house] in {city}.
In {city}, {first} [enjoys/likes/goes in for] {hobby}."""),
    first_person=lines("""
[My name is/I am/I'm/This is/People call me/They call me] {name}.
{name} here.
[Regards/Best wishes/Greetings/See you], {name}.
{name} is my name.
[I am/I'm] {age} years [old/of age].
[My age is/I turned/I just turned] {age}.
[How old? I am/My age?] {age}.
It is {age} years [since/ago that] I was born.
[I work as/I am/I make a living as/I was hired as/I am employed as] {a_job}.
My [job/work/profession/trade/occupation] is {job}.
[By profession/By day/At work] I am {a_job}.
[I live in/I am from/I write to you from/My home is in/You find me in/I moved to] {city}.
[My city is/My home town is/Home for me is] {city}.
[My house/My flat/My family] is in {city}.
I [like/love/enjoy/go in for/am mad about/am fond of/am interested in] {hobby}.
My [hobby/favorite hobby/passion] is {hobby}.
[In my free time/After work/On weekends/In the evenings] I am busy with {hobby}.
I [spend the weekends on/relax with/never get tired of] {hobby}.
I am {name}, {age} years old.
I'm {name} from {city}.
I am {a_job} in {city}.
I'm {age} and [love/like/enjoy] {hobby}.
I am {name} and I work as {a_job}."""),
    aliases={"a_job": "job", "first": ""},
    clauses=PERSON + clauses_more_of_life.PERSON,
)  # fmt: skip


def draw_ticket(draw: Draw) -> Drawn:
    problem = draw.slot(lex.PROBLEMS, lex.HELD_PROBLEMS, 0.0)
    if draw.chance(0.3):
        problem = draw.pick(
            ("shows the error {}", "has {} problems", "lost its {}", "needs a new {}", "says {}")
        ).format(draw.made_up())
    ticket_id = draw.number(100, 99999)
    record: Record = {
        "ticket": ticket_id if draw.chance(0.7) else draw.any_code(), "reporter": draw.full_name(),
        "device": draw.slot(lex.DEVICES, lex.HELD_DEVICES), "problem": problem,
        "room": draw.code() if draw.chance(0.7) else draw.number(1, 999), "priority": draw.pick(("low", "medium", "high")),
    }  # fmt: skip
    return record, {"Priority": str(record["priority"]).capitalize()}


ticket = Kind(
    "ticket", words("ticket|support ticket|problem report", "|"), draw_ticket,
    lines("""
[Ticket/Case/Support ticket/Number] {ticket}: {reporter} in room {room} [says/writes/tells us/complains:] the {device} {problem}. \
Priority is {priority}.
{reporter} [reported/told us/wrote/noticed] that a {device} {problem} in room {room}. This is [ticket/case/number] {ticket} with \
{priority} priority.
The {device} from room {room} {problem}. [Reported by/Filed by/Noticed by/Opened by] {reporter}, [ticket number/ticket/case/number] \
{ticket}, priority {priority}.
{Priority} priority [ticket/case/report] {ticket} from {reporter}: {device} {problem}, room {room}.
Room {room}: my {device} {problem}, says {reporter}. [Ticket/Case/Logged as/Filed as] {ticket}, {priority} priority.
[Support ticket/Ticket/Case/Report] {ticket} has {priority} priority. According to {reporter}, one {device} (room {room}) {problem}.
{reporter} here, room {room}. My {device} {problem}. [Ticket/Case/Ticket number] {ticket}, priority {priority}.
Please [look at/work on/take care of/check] ticket {ticket}. The {device} of {reporter} {problem}. Room: {room}. Priority: {priority}.
[Ticket/Case/ID]: {ticket}. [Reporter/Reported by/User/From]: {reporter}. Room {room}. Problem: the {device} {problem}. Priority: \
{priority}.
We [received/got/opened/logged] ticket {ticket} ({priority} priority): "My {device} {problem}." It [came/is] from {reporter} in room \
{room}.
[Hello/Hi/Good morning], the {device} in my room ({room}) {problem}. I think this has {priority} priority. [Ticket/Case] {ticket}. \
{reporter}
[{ticket}] {reporter}, room {room}: {device} {problem} - priority {priority}
A {device} {problem}. It [stands/is/was found] in room {room} and {reporter} [opened/filed/logged] ticket {ticket} with {priority} \
priority.
[Since this morning/Since Monday/For two days/Again] in room {room} a {device} {problem}. {reporter} [needs help/complains/is waiting]. \
Ticket {ticket}, {priority} priority.
[It is room {room} again/Trouble in room {room}]: a {device} {problem}, says {reporter} about [case/ticket] {ticket}. [Priority/The \
priority is] {priority}.
{reporter} in {room} [writes/says/reports]: the {device} {problem}. [Ticket/Case/Number] {ticket}, [priority/prio] {priority}.
{reporter} My {device} (room {room}) {problem} [Ticket/Case] {ticket} Priority {priority}
{reporter} [wants/asked/is hoping] to have a {device} fixed. It {problem}. Room {room}, [ticket/case] {ticket}, {priority} priority.
[Priority/Prio]: {priority}[,/;/.] [ticket/case/number/id]: {ticket}[,/;/.] room: {room}[,/;/.] [reporter/user/from]: {reporter}[,/;/.] \
device: {device}[,/;/.] [problem/issue]: {problem}
[Device/Equipment]: {device} | [Problem/Issue/Trouble]: {problem} | [Reporter/User/By]: {reporter} | Room: {room} | [Ticket/Case]: \
{ticket} | Priority: {priority}
[Somebody/The technician] should [go to/look into/go and visit] room {room}. A {device} there {problem}. {reporter} [filed/opened/wrote] \
ticket {ticket}, and it has {priority} priority.
My {device} {problem}! [Please help/Please hurry/What can I do]? You find me in room {room}. [The ticket is/The number is/I opened \
ticket] {ticket} and the priority is {priority}. [Thanks/Regards/Yours], {reporter}
What is wrong? The {device} {problem}. Where? Room {room}. Who says so? {reporter}. [Ticket/Case]? {ticket}. Priority? {priority}.
[Whoa/Oh no/Not again], {reporter} in room {room} [has a/sits by a] {device} that {problem}. [See/Look at/Check] ticket {ticket} of \
{priority} priority.
The [priority/urgency] of ticket {ticket} is {priority}. The {device} {problem}. [It is the one in/It belongs to/It stands in] room \
{room}. [Reporter/Reported by/User]: {reporter}.
[Opened by/Reported by/Sent by/Filed by] {reporter} [today/yesterday/this morning]: "The {device} {problem}." [Location/Place]: room \
{room}. [Ticket/Case] {ticket}. [Urgency/Priority]: {priority}.
{ticket} / {priority} / room {room} / {reporter} / {device} {problem}
With {priority} priority we [logged/filed/opened] [case/ticket] {ticket}: {device} {problem}, room {room}, reporter {reporter}.
{reporter} [called/phoned/came by] from room {room} [because/since] the {device} {problem}. We [made it/opened/logged it as] ticket \
{ticket}. Its priority is {priority}.
I [work/sit/am] in room {room} and my {device} {problem}. [My name is/I am/This is] {reporter}. You [filed/logged] it as {ticket}, \
[which has/of/and that is of] {priority} priority.
[Room/Office] {room} has a {device} which {problem}. The [case/ticket] {ticket} by {reporter} is of {priority} \
priority.""") + lines_of("ticket"),
    lines("""
Logged as {ticket} with {priority} priority: {reporter} complains that the {device} in room {room} {problem}.
Somebody should visit room {room}, where the {device} {problem}; {reporter} filed it as {ticket}, priority {priority}.
Case {ticket}, opened by {reporter}. Priority {priority}. In room {room}, the {device} {problem}.
Of {priority} priority is {ticket}, which {reporter} opened: a {device}, to be found in room {room}, {problem}.
"It {problem}," writes {reporter} about the {device} of room {room}. The case got number {ticket} and {priority} priority."""),
    (URGENT, PHONE, EMAIL, RESOLVED),
    sentences=lines("""
[This is/See/It is/Please look at/We opened/It was logged as/It was filed as] ticket {ticket}.
[Ticket/Case/Ticket number/Case number/ID]: {ticket}[./]
The [ticket/case/number of the ticket/ticket number] is {ticket}.
[Ticket/Case] {ticket} [was opened/is open/is new/was logged today].
[It is/It was] case {ticket}.
[The reporter is/It was reported by/It was filed by/It was opened by/The report is from/It came from] {reporter}.
[Reporter/Reported by/User/Opened by/From]: {reporter}[./]
{reporter} [reported it/complains/needs help/wrote to us/called us/opened it/is waiting for help].
According to {reporter}, it [began/started] [today/yesterday/this morning].
The user [is called/is/has the name] {reporter}.
The {device} {problem}.
[A/One] {device} {problem}.
[Problem/Issue/Trouble]: the {device} {problem}[./]
[What happened?/What is wrong?] The {device} {problem}.
[Again/Since this morning/Since Monday] the {device} {problem}.
The [device/broken device/equipment] is a {device}.
[Device/Equipment/Machine]: {device}[./]
[It is about/We are talking about/Somebody must fix/Please check] the {device}.
It {problem}.
[Problem/Issue/Trouble/Error]: it {problem}.
[They say/We hear/The report says] it {problem}.
[The room is/It is in/It stands in/You find it in/Go to/Please visit/It happened in] room {room}.
Room: {room}[./]
[Room/Place/Location]: room {room}[./]
[It should be repaired, go to/Somebody has to visit/The technician is needed in/Look into] room {room}.
[Where? In/Place?] Room {room}.
[The priority is/Its priority is/Priority/This has priority] {priority}.
[Priority/Prio/Urgency]: {priority}[./]
{Priority} priority.
[It has/It is of/It was given/We gave it/Logged with] {priority} priority.
Ticket {ticket} has {priority} priority.
{reporter} [opened/filed/wrote/is the reporter of] [ticket/case] {ticket}.
{reporter} in room {room} [needs help/is waiting/reported it].
{reporter} [says/reports/writes that/complains:] the {device} {problem}.
In {room}, the {device} {problem}.
[Case/Ticket] {ticket} is about the {device}.
[Case/Ticket] {ticket}: it {problem}."""),
    first_person=lines("""
[My name is/I am/This is/I'm] {reporter}.
{reporter} here.
[Thanks/Regards/Yours/Please help], {reporter}.
{reporter} is my name.
[My ticket is/My case is/I opened ticket/The number I got is/You gave me ticket] {ticket}.
[Ticket/Case] {ticket} is mine.
[About my ticket/Look at my case]: {ticket}.
[My/The/Our] {device} {problem}.
[Since this morning/Again/Help!] my {device} {problem}.
[I am/I sit/I work/You find me/Please come and see me] in room {room}.
My [room is/office is room/desk is in room] {room}.
[Come to/I wait in/Please visit me in] room {room}[, please/].
[I think the priority is/For me the priority is/My ticket has priority] {priority}.
[I think it has/I gave it/For me it is of/I would say] {priority} priority.
Priority: {priority}.
[It is about my/I have trouble with my/Please fix my] {device}.
[My problem: it/I noticed that it/I am sorry, but it/Strange, it] {problem}.
[I see that it/All I can say: it/What I see: it] {problem}.
[My trouble is this: it/I cannot work, because it/Please fix it, it] {problem}.
[I use a/My device is a] {device}.
[Device/The device]: {device}.
I am {reporter} in room {room}.
{reporter} speaking, my {device} {problem}.
My {device}, which is in room {room}, {problem}."""),
    aliases={"Priority": "priority"},
    clauses=TICKET + clauses_more_of_life.TICKET,
)  # fmt: skip
