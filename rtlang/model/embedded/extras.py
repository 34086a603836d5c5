"""Optional fields of records: each with the sentence of a text that tells it."""

from collections.abc import Callable

from rtlang.model.embedded import extras_lead_ins
from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.text_files import blocks_of
from rtlang.model.embedded.words import Draw

Value = str | int | float | bool | list[str] | list[dict[str, str | int]] | dict[str, str | int] | None
Record = dict[str, Value]
Extra = Callable[[Draw], tuple[str, Value, str]]  # key, value, and the sentence that tells it
MORE = blocks_of("yes_no")


def ways(text: str) -> tuple[str, ...]:
    """The sentences of a text, a line each."""
    return tuple(line for line in words(text, "\n") if line)


def yes_no(key: str, yes: str, no: str, held_yes: str, held_no: str, block: str) -> Extra:
    """An extra field that is true or false; the sentences of each, a line each; those of a block of yes_no.txt too."""
    known, held = (
        {True: ways(yes) + MORE[f"{block} yes"], False: ways(no) + MORE[f"{block} no"]},
        {True: ways(held_yes), False: ways(held_no)},
    )

    def extra(draw: Draw) -> tuple[str, Value, str]:
        value = draw.chance(0.5)
        return key, value, draw.template(known[value], held[value])

    return extra


def told(key: str, make: Callable[[Draw], str | int], known: str, held: str) -> Extra:
    """An extra field with a value; its sentences, a line each, have a place `{}` for it."""
    known_texts, held_texts = ways(known), ways(held)

    def extra(draw: Draw) -> tuple[str, Value, str]:
        value = make(draw)
        return key, value, draw.template(known_texts, held_texts).format(value)

    return extra


URGENT = yes_no(
    "urgent",
    """
[This/It/The matter/All this] is [really /very /quite /]urgent[./!]
[Please hurry,/Hurry up,/Be quick,] it is urgent.
We need it as soon as possible, [it is urgent/this is urgent/because it is urgent].
[Urgent: yes./An urgent case./Urgent!]
[It cannot wait./This cannot wait until tomorrow./We cannot wait any longer.]
[Please act at once/Please do it at once/Please be fast], the matter is [urgent/very urgent].
[Treat this/Handle this/Take it] as [a matter of hours/top priority/an emergency][./, please.]
[Every minute counts/Time is short/The deadline is today/I need it right now/Drop everything else][./, so hurry./!]
[High/Highest/Top] priority[./!/, please.]
""",
    """
[This/It/The matter] is not [urgent/very urgent/urgent at all].
There is no [hurry/rush/need to hurry].
Take your time[, this is not urgent/, it can wait/].
No rush[ at all/, please/, we can wait/].
[Urgent: no./Nothing urgent./It can wait./This can wait until next week.]
[We are not in a hurry./Whenever you have time./I am in no hurry.]
[Low/Normal/No special] priority[./ here.]
[Any day/Next month/Whenever it suits you] [is fine/will do/is early enough].
[We have/There is/You have] [plenty of/lots of/enough] time[./ for this./, do not hurry.]
""",
    "It should be in your hands by noon, not later.\nTop urgency, please act at once.",
    "Not urgent in any way.\nNo need to rush.",
    block="urgent",
)
PHONE = told(
    "phone",
    Draw.phone,
    """
[Phone/Phone number/Tel./Telephone/Mobile]: {}[./]
[You can/You may/Please/Feel free to] call {}[./ at any time./ for questions.]
Call {} [for questions/for more/if you have questions/before noon].
[The/My/Our] phone number is {}.
Tel. {}
[Questions?/Any questions?/More?] [Call/Dial/Ring us on] {}.
[Reach us/You reach us/You can reach me] [on/at/by phone on] {}.
The number to [call/dial/ring] is {}.
"""
    + extras_lead_ins.PHONE,
    "Reachable at {}.\nRing {}.",
)
EMAIL = told(
    "email",
    Draw.email,
    """
[Write/Please write/You can write/Send a mail] to {} [with questions./for details./for more./.]
[Email/E-mail address/Mail/Email address]: {}
The email address is {} .
[Contact/For contact]: {}
[My/Our/The] mail address is {} .
[Questions/Answers/Details/Messages] [go/should go/please] to {} .
[You can/Please/You may] mail {} [for details/any time/for questions].
[Reply to/Answer to/Drop a line to] {} [please/, please/].
"""
    + extras_lead_ins.EMAIL,
    "Mail goes to {} please.\nE-mail {}",
)
WEBSITE = told(
    "website",
    Draw.url,
    """
[See/Look at/Check/Go to] {} for [more/details/pictures/everything else].
[More/Details/Pictures/Everything] at {}
[Website/Web/Homepage/Web page/Link]: {}
Find out more on {} .
[The/Our/My] [website/homepage/web address] is {}
[You find us at/We are online at/On the web:] {}
[Read more/Learn more]: {}
"""
    + extras_lead_ins.WEBSITE,
    "The web page is {}\nVisit {} .",
)
NOTE_CODE = told(
    "reference",
    Draw.any_code,
    """
[Reference/Reference number/Our reference/Your reference]: {}.
The reference [is/number is/code is] {}.
Please [quote/use/mention/give] {} as [the reference/reference/a reference].
[It has/We use/It got] the reference {}.
[The code/The number] {} is [the reference/your reference/our reference].
[We filed it/It is stored/You find it] under the reference {}.
"""
    + extras_lead_ins.REFERENCE,
    "Refer to {}.\nRef. {}.",
)
WINDOW_SEAT = yes_no(
    "window_seat",
    """
It is a window seat.
[Window seat: yes./A window seat./A seat by the window.]
[The seat is/You sit/It is] [next to/by/right by] the window.
[With a view:/As requested,/Good news:] a window seat.
[The seat has/You get/She gets/Your place has/It comes with] a [window/view/window of its own].
[You can/One can/He can] look out of the window[./ from there./ all the way.]
[Window/A place at the window/A window place] [was booked/was reserved/as wanted/please][./!]
[The window/The view] is [yours/right beside the seat/on that side].
""",
    """
It is not a window seat.
[No window seat./Window seat: no./Not a window seat.]
[It is/The seat is/You sit] [on the aisle/in the middle], [not at the window/no window seat/not by the window].
[Sorry,/This time,/Sadly,] no window seat[./ was left.]
[There is/It has/The seat has/You get] no [window/view].
[An aisle seat/A middle seat/The seat in the middle/Aisle][./, far from any window./ instead of the window.]
[All window seats/The places at the window] [were taken/are gone/were sold].
[Far from/A long way from/Not near/Nowhere near] the window.
""",
    "The seat is at the window.",
    "The seat is away from the window.",
    block="window_seat",
)
BREAKFAST = yes_no(
    "breakfast",
    """
Breakfast is [included/part of the price/included in the price].
[With breakfast./Breakfast: yes./Breakfast included.]
[The price/The rate/The room] [includes/comes with] breakfast.
[Every morning there is/You get/They serve] breakfast[, it is included/ at no extra cost].
[Breakfast/A morning meal] [comes with it/is in the price/costs nothing/is free/is on the house/is served at no charge].
[You pay nothing for/We pay for/The hotel offers free/Enjoy free/The price has] breakfast[./ every day.]
[Bread and coffee/Eggs and coffee/The morning meal] [are/is] [part of the rate/included].
""",
    """
Breakfast is not [included/part of the price].
[Without breakfast./No breakfast./Breakfast: no.]
[The price/The rate/The room] [does not include/comes without] breakfast.
[Breakfast costs extra/You pay extra for breakfast], [it is not included/so it is not included].
[Breakfast/A morning meal] [has to be paid/is not in the price/is not offered/is not served/must be bought][./ separately.]
[Room only/Just the room/Bed only/Only the bed][./, without a meal./, nothing to eat.]
[There is/They serve/We offer/You get] no breakfast[./ here.]
""",
    "The rate covers breakfast.",
    "Guests bring their own food, breakfast is extra.",
    block="breakfast",
)
REMOTE = yes_no(
    "remote",
    """
Remote work is [possible/fine/allowed].
[The job/The work/The position] is [remote/fully remote].
You [can/may] work from home[./ if you like./ all week.]
[Remote: yes./A remote job./Work from home./Fully remote.]
[You choose/We let you choose] where you work[./, at home or elsewhere.]
[Home office/Work from anywhere/Working at home] is [possible/fine/allowed/no problem/part of the deal].
[Your desk can be/The whole team works/Everybody works] at home.
""",
    """
[No remote work./Remote: no./Remote work is not possible./No work from home.]
[The job/The work/The position] is not remote.
You [work/have to work/must work] [on site/in the office/in our office].
[On site only/Only in the office/All days in the office], no remote work.
[Home office/Working at home] is [not possible/not allowed/out of the question/no option].
[Everybody/You/The whole team] [must be/has to be/sits] in the office[./ every day.]
[We want/We need/They want] you [here/on site/at your desk in the office].
""",
    "You may log in from your sofa.",
    "Presence in the office is a must.",
    block="remote",
)
PAID = yes_no(
    "paid",
    """
It [is already/has already been/is] paid.
The [invoice/bill/amount] has been paid[./ on time./ last week.]
[Paid: yes./Status: paid./Already paid./Paid in full.]
[We/They] [paid it/have paid it/paid] [last week/yesterday/already/on time].
[The money arrived/The payment is done/The bank sent the money], it is paid.
[The money/The whole sum/Everything] [has come in/was transferred/is on our account/arrived].
[Nothing is/There is nothing] [open/left to pay/owed][./ any more.]
[The customer/The client/He/She] [has paid/paid in full/settled it/transferred the money].
[Settled/Payment received/Payment done/Closed and paid][./!]
""",
    """
It [is not/has not been] paid [yet/so far].
[Not paid so far./Paid: no./Status: not paid./Unpaid./Still not paid.]
The [invoice/bill/amount] has not been paid[ yet/ so far/].
[We/They] have not paid [it /]yet.
[The money did not arrive/No money came/We wait for the payment], it is not paid.
[The money/The sum/The payment] [has not come/is late/is overdue/is still open/is outstanding/did not come in].
[We still wait/We are waiting/They wait] for [the money/the transfer/our money].
[The customer/The client/He/She] [has not paid/still owes it/did not pay].
[Open/Outstanding/Overdue/Awaiting payment/Payment open][./!]
""",
    "The money has been sent, so it is paid.",
    "Payment is still missing.",
    block="paid",
)
DEPARTMENT = told(
    "department",
    lambda d: d.pick(lex.DEPARTMENTS),
    """
[Department/Dept./Unit/Team]: {}.
The department is {}.
In charge of {}.
[Works in/Part of/A member of/Sits in] the {} department.
[You find the desk in/The door says/The team is called] {}.
The {} [department/team/unit] [is the right place/is in charge/will help].
"""
    + extras_lead_ins.DEPARTMENT,
    "Assigned to {}.\nThe unit in charge is {}.",
)
COLOR = told(
    "color",
    lambda d: d.pick(lex.COLORS),
    """
[The color is/Its color is/The color of it is] {}.
[Color/Colour]: {}.
It [comes in/is/is sold in/is available in] {}.
[Only/Now also/We have it] in {}.
[The surface/The outside/All of it] is {}.
[We painted it/They made it/You get it in] {}.
"""
    + extras_lead_ins.COLOR,
    "Painted {}.\nColored {}.",
)
IN_STOCK = yes_no(
    "in_stock",
    """
It is in stock[./ now./ and ready to go.]
[In stock: yes./In stock./Available, in stock.]
We have [it/some/many] in stock.
[Our shop has/The store has] it in stock.
[You can have it today/We can ship it today], it is in stock.
[It is/They are] [available/on the shelf/here/ready to ship/ready for you][./ right now.]
[Some/Many/A few/Enough/Plenty] [are left/of them are here/of them are on the shelf/remain].
[You can/We can] [take it home/send it/ship it] [now/at once/today].
[Available/On the shelf/Ready to ship/Still there][./ now./!]
""",
    """
It is [out of stock/not in stock/sold out][./ now.]
[In stock: no./Out of stock./Sold out./Not in stock at the moment.]
We [do not have it/have none/have nothing] in stock.
[You have to wait/Sorry/Come back later], it is [out of stock/not in stock].
[It is/They are] [not available/gone/sold/not on the shelf][./ right now./ for now.]
[None/Not one/No more] [are left/is left/remains][./ in the shop.]
[The shelf is/Our shelves are/The box is] empty[./, come next week.]
[Not available/Gone/None left/Currently gone][./ for now./!]
""",
    "There are still some in stock.",
    "The stock is empty.",
    block="in_stock",
)
URGENT_OF_CASE = yes_no(
    "urgent",
    """
[The case/This/It/The matter] is [urgent/very urgent/really urgent].
[Urgent: yes./An urgent case./Urgent!]
[This/The case/It] cannot wait[./ any longer.]
[It must be treated/The patient must be seen/It has to be looked at] at once, it is urgent.
[Every minute counts/Time is short/An emergency/Life is at stake][./!/, so hurry.]
[High/Highest/Top] priority[./!/ for this case.]
[See/Look at/Examine/Help] [the patient/this one] [right now/first/before all others].
""",
    """
[The case/This/It/The matter] is not [urgent/very urgent].
[Urgent: no./Not an urgent case./No hurry./Not urgent.]
[This/The case/It] can wait[./ until next week./, it is not urgent.]
[There is time./There is no hurry with this./No need to hurry.]
[Low/Normal/No special] priority[./ for this case.]
[Any day/Next month/Next week] [is fine/will do/is early enough].
[We have/There is/You have] [plenty of/lots of/enough] time[./ for this.]
""",
    "Treat it as urgent.",
    "There is nothing urgent about it.",
    block="urgent_of_case",
)
PUBLISHER = told(
    "publisher",
    Draw.company,
    """
[Publisher/Published by/Publishing house]: {}.
The [publisher/publishing house] is {}.
[Published/Sold/Brought to the shops] by {}.
[It was/The title was] published [by/at/with] {}.
{} [published it/is the publisher/prints and sells it].
"""
    + extras_lead_ins.PUBLISHER,
    "{} brought it out.\nPrinted at {}.",
)
FURNISHED = yes_no(
    "furnished",
    """
It is [furnished/fully furnished].
[Furnished: yes./Furnished./Fully furnished.]
The [rooms/place/flat] [are/comes/is] furnished.
[It comes with/There are/You get] [beds and tables/all the furniture], it is furnished.
[Chairs, tables and beds/All the furniture/The furniture] [stay there/is there/are in it/stays/belongs to it].
[You need no furniture/No need to buy a bed/Just bring your clothes][./, all is there.]
[Beds/A bed/A table] and [chairs/a sofa/lamps] [are there/are waiting/are included].
[With/Including/Complete with] [furniture/all furniture/beds and chairs].
""",
    """
It is not furnished[./ at all.]
[Furnished: no./Unfurnished./Not furnished.]
The [rooms are/place is/flat is] [not furnished/unfurnished/empty, not furnished].
[There is no furniture/You need your own beds/It has no furniture], so it is [not furnished/unfurnished].
[The rooms are/The place is/It comes] [empty/bare/without beds/without furniture].
[You have to/You must/One has to] [buy/bring/get] [the furniture/beds and tables/your furniture].
[Without/No/Lacking] [furniture/any furniture/beds or chairs].
[Not one chair/Not a bed/No table] [is in it/is there/comes with it].
""",
    "Furniture is included, so it is furnished.",
    "You bring your own furniture, it is not furnished.",
    block="furnished",
)
PETS = yes_no(
    "pets",
    """
Pets are [allowed/fine/no problem/accepted].
[Pets: yes./Pets allowed./With pets? Yes.]
You may [bring/keep/have] pets.
[Your cat/Your dog/A cat/A dog] may [come/move in] too, pets are [allowed/accepted].
[Dogs/Cats/Animals/Dogs and cats] [are allowed/may live here/are fine/are no problem/may come].
[We like/The owner likes/We love] [animals/dogs/cats/pets][./, so bring yours.]
[You can/Feel free to] bring [your dog/your cat/animals/a pet].
""",
    """
Pets are [not allowed/not accepted/forbidden].
[No pets./Pets: no./Sorry, no pets./Pets? No.]
You [may not/cannot] [bring/keep/have] pets.
[The owner does not want/Nobody may keep/We allow no] pets.
[Dogs/Cats/Animals/Dogs and cats] [are not allowed/must stay out/may not live here/are forbidden/cannot come].
[Nobody/No one] [may/can] [bring/have] [animals/a dog/a cat/pets].
[Without animals/No animals/No dogs or cats/Leave your dog at home][./, please.]
""",
    "A dog in the rooms is no problem for us.",
    "We do not accept pets.",
    block="pets",
)
