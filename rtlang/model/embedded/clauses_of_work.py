"""Clauses of texts about work: job ads, invoices, contacts, and visits to a doctor."""

from rtlang.model.embedded.clauses import Clauses
from rtlang.model.embedded.kinds import lines

VACANCY = Clauses(
    cores=lines("""
{company} [hires/is hiring/recruits/takes people on/has an opening/grows and grows/published an ad/has a free desk]
{company} [recruits/advertises for/is short of/hopes to find/lacks/calls for/is after/cannot do without/plans to hire] {a_job}
{company} [promises/budgets/puts up/spends/hands out/would part with] {salary} a year
{company} [trusts in/builds on/works with/lives on/swears by] {needs}
{company} [makes people move to/runs an office in/hires people in/opens its doors in] {city}
{title} [is the role to be filled/is what the post is called/is the job on offer/stands above the ad/it says on the door]
{title} is the [role/post/opening] that {company} [advertises/has to fill/announced]
{a_job} [is sought/will be hired/finds work/is what we lack/can start at once/would be welcome/is missing on the team]
{a_job} [finds a desk at/may sign on with/is welcome at/gets a contract from/would be of use to] {company}
{a_job} [makes/can make/draws/is paid/costs us/brings home] {salary} a year
{a_job} has to [handle/live with/have learned/be good at] {needs}
{city} [has work for/is the town that needs/is a city without/is the place to live for/would be the home of] {a_job}
{city} is [where the desk stands/home to the team/where the work gets done/where you would live/the place to be]
{city} is [home to/the base of/the seat of/where you find/where they run] {company}
{salary} [a year/per year] [is the wage/is what you would make/is on the table/is the figure in the contract/comes with the job]
{salary} a year [waits for/is set aside for/is the wage of/hires/buys us/is paid to] {a_job}
{salary} a year is what {company} [puts on the table/would pay/has to give/can spend]
{needs} [must be mastered/will be needed/should not scare you/would be your daily work/will be tested/may get you in]
{needs} [will open the door to/must be in the bag of/will be the tools of] {a_job}
[apply/come along/start soon/send your papers/get in touch/pack your bags/say yes/hurry]
[join/support/strengthen/try/write to/send your papers to/sign on with/come aboard at] {company}
[become/be/start as/train as/work as] {a_job}
[move to/settle in/come to/think of/fall in love with] {city}
[make/earn/get/draw] {salary} [a year/per year/every year]
a [post/position/role/vacancy/desk/contract/chair] [is free/is open/is waiting/came up/fell vacant/is to be filled]
an opening [came up/was announced/is still there] at {company}
[somebody/someone/a person] [good at/at home in/trained in/at ease with] {needs} [is needed/will be hired/is sought/may apply]
the [contract/wage/paycheck] [stands at/comes to/is fixed at/starts at/reads] {salary}
the [team/office/shop/branch] in {city} [hires/is short of hands/has a desk to fill/grows/lacks {a_job}]
the [ad/offer/post] is [new/still open/from {company}/about {a_job}/meant for {a_job}]"""),
    adjuncts=lines("""
[at/with/for/by/on behalf of] {company}
[working/employed/engaged/in service/under contract] [at/with] {company}
[, employer:/, company:/, firm:/, the employer being/, the firm is called/, the ad is by/, says/, so writes] {company}
[on the team of/in the offices of/on the books of/in a contract with/in an ad of/among the people of] {company}
[, an ad that/, a post that/, news which/, a chance that] {company} [announced/put online/offers/sent round]
[joining/supporting/serving/helping] {company}
as {a_job}
[employed/starting/engaged/paid/listed] as {a_job}
[, title:/, job title:/, position:/, role:/, the title being/, the post is called/, job:] {title}
[in the role of/in the post of/with the duties of/in the shoes of] {a_job}
[being/becoming/playing/in search of/on the lookout for/to be] {a_job}
[under the title/under the heading/with the job title/with the word] {title}
in {city}
[based/located/working/stationed/to be filled/with an office/with a desk] in {city}
[near/close to/not far from/in the heart of/around/within reach of] {city}
[, city:/, location:/, place of work:/, the place being/, the office is in/, where to:/, workplace:] {city}
[at the office in/at the branch in/on site in/down in/over in/up in/on the ground in] {city}
for [our/the/its/a] {city} [office/branch/shop]
[, which means living in/, which means a move to/, with every day spent in/, an hour from] {city}
[moving to/living in/settling in/commuting to] {city}
for {salary} [a year/per year/annually/yearly/each year]
[at/on/against] {salary} [a year/annually/every year]
[earning/making/drawing/getting/worth/paying/taking in] {salary}[/ a year/ per year]
[, salary:/, pay:/, wage:/, yearly pay:/, the pay being/, which pays/, which brings in/, paid with] {salary}
with [a salary/a wage/yearly pay/an income/earnings/a paycheck] of {salary}
with {salary} [a year/as the salary/as yearly pay/in the contract]
[knowing/mastering/using/offering/handling/having learned/practicing] {needs}
with [knowledge of/experience in/practice in/a background in/a talent for/a love of/a head for/training in] {needs}
[, skills:/, required skills:/, needed:/, must know:/, the skills being/, the tools are] {needs}
[good at/strong in/trained in/at home in/at ease with/able to handle] {needs}
[thanks to/on the strength of/given/in exchange for/on account of] [skills in/talent for/years of] {needs}
if you [can handle/like/have learned/live for/are good at] {needs}
[, which takes/, which calls for/, a job made of/, a job full of/, to be done with] {needs}
[, where/, a place where/, a job where] {needs} [will be used/must be known/will be needed every day/should come easily]
as {a_job} [at/with/for] {company}
as {a_job} [for/at/with pay of] {salary} [a year/per year]
[at/with/for] {company} in {city}
in {city} [for/with/on] {salary} [a year/per year]
[paying/offering/promising] {salary} [for/to people good at/in return for] {needs}"""),
)

INVOICE = Clauses(
    cores=lines("""
[invoice/bill/document/invoice no./bill no./bill number] {number} [came in/is open/lies on the desk/has not been paid/went out/is new]
[invoice/bill/document] {number} [asks for/adds up to/lists/names/demands/makes/reads] {total} {currency}
[invoice/bill] {number} [stems from/reached us from/was made out by/was written at] {company} in {city}
[invoice/bill] {number} [falls due/has to be cleared/runs out/must be off the desk] by {due}
{number} [is the number/is our reference/is still unpaid/stands on the bill/is what the papers say/has to be cleared]
{company} [from/of/in] {city} [bills us/wants money/sends a bill/waits for its money/writes/reminds us/counts on us/delivered]
{company} [from/of/in] {city} [demands/bills/claims/expects/would like/is owed] {total} {currency}
{company}, [a firm/a shop/a vendor/based/at home/with an office] in {city}, [sent a bill/made out the bill/expects payment/did the work]
{city} is [home to/the seat of] {company}, [our supplier/the vendor/a firm that bills us/the sender of the bill/where the money goes]
{city} is where {company} [made out/posted/wrote/signed] the [bill/invoice]
from {city} [came/we got/arrived] a [bill/letter/reminder] of {company}
{due} is the [deadline/due date/last day/day to keep in mind/date to pay by/end of our time]
{due} is when [the money must be there/payment falls due/our time runs out/it has to be settled/they want to be paid]
{total} {currency} [is/are] [owed/open/at stake/on the bill/missing/asked for/to be wired/the price]
{total} {currency} [will travel/should be wired/is owed/belongs/has to be sent] to {company} in {city}
{total} {currency} [settles/covers/clears/pays/is enough for/closes] [the bill/the invoice/bill {number}/invoice {number}]
{total} [is the sum/is the total/stands at the bottom/is what they ask/is the figure/makes the total]
{currency} is [the currency/what they want to see/what we pay in/how they count/the money of the bill]
{currency} {total} [is due/is owed/is to be wired/is what it costs/leaves our account]
[we/they say we/our books show that we] [owe/still owe/were charged/have to wire/must part with] {total} {currency}
[wire/send/transfer/hand over/pay out/set aside] {total} {currency}
[wire/send/transfer/hand over] the money to {company} [in/of] {city}
[settle/clear/check/file/look up/remember/do not forget] [invoice/bill/document/the bill with the number] {number}
[pay/settle up/send the money/do not wait/act soon/transfer it/clear the debt]
[thank/pay/satisfy/answer/write to] {company} in {city}
the [bill/invoice] [is here/is open/was checked/lies here/has come/needs paying/came by mail]
the [sum/total/amount/balance/price] [reads/stands at/adds up to/makes/equals] {total} {currency}
the [sum/total/amount/balance/price] [reads/stands at/adds up to/makes/equals] {total}
a [bill/reminder/debt/payment/claim] of {total} {currency} [is open/came in/lies here/has to be settled]
payment [falls due on/must arrive by/is expected by/may take until/ends on] {due}
buying from {company} in {city} [was not cheap/has its price/cost us {total} {currency}/left us a bill]"""),
    adjuncts=lines("""
[under number/under the number/under reference/on invoice/on bill/with number/with the number] {number}
[, number/, number:/, invoice no./, reference:/, the number being/, bill number/, marked/, filed as/, our reference:] {number}
[according to/as per/following/in line with/against/to settle/as told in] [invoice/bill/document] {number}
[quoting/citing/naming/marked/numbered/filed as/labelled] {number}
with {number} [as the number/as reference/on the bill/on the papers/as invoice number]
[, which has/, which bears/, which goes by/, which we filed under] the number {number}
[sent/made out/issued/posted/signed/mailed] by {company} [in/of/from] {city}
[owed to/payable to/in favor of/to the account of/on behalf of/in the name of] {company} [in/of/from] {city}
[, vendor:/, supplier:/, seller:/, sender:/, the vendor being/, the firm being/, payee:] {company}, {city}
[because/since/now that/after] {company} [from/of/in] {city} [delivered/did the work/supplied us/has sent the goods]
[after buying at/for goods from/for the work of/on a bill from/in a letter from] {company} [in/of] {city}
[, a bill that/, an invoice which/, a paper that] {company} [from/of] {city} [sent/made out/mailed us]
from {city}, [where/the place where] {company} [sits/is at home/works/has its office]
[, the town being/, sent from/, town:] {city}, [the seller being/the firm being/vendor:/seller:] {company}
[totalling/amounting to/adding up to/coming to/reaching/worth/over/to the amount of] {total}
with [a total/a sum/a price/a balance/an amount] of {total}
[, total:/, sum:/, amount:/, the sum being/, the total being/, to pay:/, in all/, which makes/, which adds up to] {total}
for {total} [in all/altogether/in total/and no more]
with {total} [to pay/as the sum/at the bottom/still open]
in {currency}
[billed/booked/counted/written/to be paid/payable/settled] in {currency}
[, currency:/, the currency being/, the currency is/, all in/, everything in/, paid in] {currency}
with {currency} as [the currency/currency/money]
[using/in exchange for/by means of] {currency}
[totalling/amounting to/adding up to/worth/over/for/to the amount of/at] {total} {currency}
with [a total/a sum/a price/a balance/an open amount] of {total} {currency}
[, total:/, sum:/, amount:/, the sum being/, in all/, which makes/, which comes to/, to be wired:] {total} {currency}
[at/for/over/with a total of] {currency} {total}
[against/in exchange for/on payment of/at the price of/with] {total} {currency}[/ in all/ to be paid/ still open]
[by/until/at the latest on/not later than/in time for] {due}
[due/payable/falling due/to be settled/to be cleared/expected] [on/by/until/before] {due}
[, due:/, due date:/, deadline:/, last day:/, the deadline being/, due on/, pay by/, payable until] {due}
with {due} as [the deadline/due date/the last day/the day to pay]
[with time until/not waiting longer than/keeping the deadline of/within the time up to/while it is not yet] {due}
[, which falls due on/, which runs out on/, which we have to clear by/, which must be wired by] {due}
[worth/over/for] {total} {currency} and [due/payable/to be wired] [on/by] {due}
[, {due} being/, with {due}] the [deadline/due date/final day]"""),
)

CONTACT = Clauses(
    cores=lines("""
{name} [answers/picks up/will help/takes the calls/looks after you/is your partner/has moved/handed me this card]
{name} [has a desk/earns a living/is busy/started/makes a career] [at/with] {company}
{name} [represents/speaks for/sells for/manages/joined/travels for/signs for] {company}
{name} [checks/uses/watches/owns/never misses] the mailbox {email} [now/daily/, of course]
{name} [listens on/picks up/carries the phone with the number/talks on/shares the line] {phone}
{name} [sits/has a desk/opens the door/receives letters] at {street}, {zip} {city}
{company} [employs/trusts/has hired/relies on/is run by/pays/sends] {name}
{company} [resides/rents rooms/does business/moved in/keeps shop/is housed/opened] at {street}, {zip} {city}
{company} [rents rooms/resides/keeps shop/opened] in {zip} {city}, [{street}/at {street}/on {street}]
{company} [takes calls/does business/hands out advice/runs a line/serves customers] on {phone}
{company} [receives/reads/answers/collects] mail at {email} [every day/around the clock/on weekdays]
{phone} [is the line/gets through/is what to dial/stands on the card/rings in the hall/will be answered]
{phone} [rings on the desk of/connects you with/leads to/gets you/is how to reach] {name}
{phone} [is the line of the firm/connects you with the office of/rings in the rooms of/belongs to the company] {company}
{email} [is read by/reaches/lands with/is the mailbox of/brings your letter to] {name}
{email} [is the mailbox/is checked daily/takes your questions/stands on the card/is for letters without paper]
{street} in {city}, {zip}, is [home to {company}/where to go/the way there/where {name} sits/what the sign says]
{city} is where {company} [sits/rents rooms/has its door], [to be exact/precisely] at {street}, zip code {zip}
in {city} at {street} (zip {zip}) [sits/lives/you meet/you can greet/stands the desk of] {name}
in {zip} {city}, {street}, [stands the house of/rises the office of/is the home of the firm/does business the firm] {company}
[ask for/talk to/greet/look for/contact/get in touch with/turn to/thank/remember] {name}
[call/ring/phone/try/note down] {phone}
[try/choose] {phone} and [ask for/greet/wait for/talk to] {name}
[mail/write to/send a line to/use/try] {email} [soon/now/if in doubt/first]
[drop in/get in touch/come by/send a letter/feel free to ask/keep this card/save this/do not lose this]
[address/send] letters to {street}, {city} {zip}
[working/calling/writing] for {company}, {name} [travels a lot/is hard to catch/is well known/answers quickly]
the [card/entry/note/sheet/sign] [is about/names/shows/lists/introduces/leads to] {name}
the [card/entry/note/page] [is new/was found/is up to date/has changed/tells it all]
the [person/colleague/agent] in charge is {name}"""),
    adjuncts=lines("""
[, ask for/, name:/, contact:/, the name is/, the person being/, person in charge:/, attention:] {name}
with {name} [on the line/in charge/as contact/at the desk/behind the door]
[care of/for the attention of/through/with the help of/in the person of/by the hand of] {name}
[, where/, a place where/, for here/, since] {name} [sits/will help/is in charge/answers/reads along]
[asking for/looking for/talking to/greeting] {name}
[, a card of/, the details of/, the data of/, as told by] {name}
[at/for/from] {company}
[working/employed/active/in service/on the books] [at/with] {company}
[representing/on behalf of the firm/in the service of/on the staff of/in the name of the company/on duty for] {company}
[, firm:/, company:/, employer:/, the firm being/, the employer is/, business:] {company}
[, who is paid by/, whose employer is/, who represents/, a colleague from/, a partner at/, an agent of] {company}
with {company} [as employer/as the firm/on the sign/on the card]
[on/under/at] {phone}
by [phone/telephone] [on/under/at/, number] {phone}
[dialing/calling/ringing/phoning/trying] {phone}
[, phone:/, tel.:/, telephone:/, mobile:/, phone number:/, the number is/, call/, the phone number being] {phone}
with [the phone number/the number/the telephone number/the line] {phone}
[, reachable on/, whose phone number is/, whose number is/, who answers at/, who picks up on] {phone}
[over the line/at the number/through the line/on the phone under] {phone}
by [email/mail] [at/under/to] {email} [any time/for questions/, too]
[writing to/mailing/via/through/by way of] {email} [for questions/if you like/instead/as well]
[, email:/, mail:/, e-mail:/, email address:/, the email being/, mailbox:] {email}
[, or/, otherwise/, or else] {email} [for letters/if you prefer writing/for those who write]
[, whose mailbox is/, who reads/, who answers mails to/, whose email is] {email} [on all days/at work/, by the way]
with {email} as [email/mail address/email address/the mailbox]
with [the email/the mail address/the email address/the mailbox] {email} [on the card/in the book/below]
at {street}, {zip} {city}
[located/housed/sitting/to be found/based/at home] at {street}, {zip} {city}
[in/over in/down in] {zip} {city}, [{street}/at {street}]
[in/over in] {city} at {street} ([zip/zip code] {zip})
[, address:/, office:/, postal address:/, the address being/, the office is at/, letters to] {street}, {city} {zip}
[, street:/, the street is/, the street being] {street}, [town:/city:/the city being] {city}, [zip:/zip code/the zip being] {zip}
[, zip:/, zip code/, the zip is] {zip}, [town:/city:/the city is] {city}, [street:/the street is/the street being] {street}
[, whose office is at/, whose desk stands at/, who sits at/, who gets letters at] {street}, {zip} {city}
with [an office/a desk/a shop/rooms/a door] on {street} in {city} {zip}
in the house at {street} in {city}, {zip}
on {phone} or [by mail/by email/through/in writing] at {email} [too/as well/any time]
[with/under] {phone} [as the number/as phone number] and {email} as [the email/email address/mailbox]
at {company}, {street}, {zip} {city}"""),
)

VISIT = Clauses(
    cores=lines("""
{patient} [came/is here/sat in the waiting room/was examined/asks for help/feels bad/stopped by/was let in/walked in/is better]
{patient}, [now {age}/{age} years old/a patient of {age}/who is {age}/only {age}], [came in/was examined/asked for help/stopped by]
{patient} [consulted/called on/met/was examined by/sat down with/went to see/trusts/had a talk with] {doctor}
{patient} [swallows/uses/goes on/left with/was put on/was told to take/needs/should try/went home with] {medicine}
{patient} [fights/fears/puts up with/lives with/mentions/describes/woke up with/cannot get rid of] {symptom}
{patient} is {age} and [unwell/not well/in pain/worried/in our care]
{doctor} [examined/received/advised/listened to/looked at/called in/welcomed/sent home/calmed down] {patient}
{doctor} [writes out/orders/picks/advises/relies on/hands over/settled on/swears by/ordered] {medicine}
{doctor} [looked into/found/worried about/treats/made notes on/asked about] {symptom}
{doctor} [was on duty/had time/helps/took a look/is the one who helped/wrote the file/worked on {date}]
{doctor} [puts {patient} on/gives {patient} a pack of/hands {patient} some/wants {patient} to take] {medicine}
{medicine} [is the remedy/will do it/was the answer/is to be taken/brings relief/was ordered/will do good]
{medicine} [eases/fights/is meant for/is taken against/calms/works against/drives out] {symptom}
{medicine} is what {doctor} [ordered/wrote out/believes in/advised/had at hand]
{medicine} [helps/is good for/was new to/will be taken by/is the remedy for] {patient}
{symptom} [was the reason/would not go away/got worse/is what it is about/started all this/was written in the file]
{symptom} [kept {patient} awake/made {patient} come/bothers {patient}/ruined the week of {patient}/is what {patient} has]
{date} [was the day of the visit/is the date in the file/was when it happened/was the day to come]
{date} was when {patient} [came/stopped by/was examined/saw a doctor/needed help]
{date} was when {doctor} [took a look/had time/made the note/was on duty/wrote the file]
{age} [is the age in the file/is how old the patient is/years is the age of the patient]
{age} is how old {patient} [is/was/happens to be]
the {age} year old [patient/guest/one] [came in/was examined/needed help/felt unwell/could not sleep]
the [patient/person on the list/one in bed/name in the file] is {patient}
the [file/nurse/desk/list] [mentions/called in/names/says it was/shows] {patient}
the [visit/appointment/check-up/talk/examination] [is over/was short/went well/was needed/took an hour/is in the file]
the [doctor/one on duty/doctor in charge] is {doctor}
[give/hand/bring/sell] {medicine} to {patient}
[call/see/greet/examine/help] {patient}
[take/buy/fetch/try/swallow] {medicine}
[ask/call/thank/see/trust] {doctor}"""),
    adjuncts=lines("""
at [the age of/age/an age of/a good] {age}
[, aged/, age:/, aged exactly/, the age being/, who is/, who just turned/, at present] {age}
[, now/, only/, already/, all of] {age} years [old/of age]
[, a patient/, a person/, somebody] [of {age} years/aged {age}/who is {age}]
[being/having turned/having reached/nearly past] {age} years [old/of age]
[, {age} years being/, with {age} years as] the age [of the patient/in the file]
in the [case/file/name] of {patient}
[, patient:/, name:/, the patient being/, the patient is/, called/, name of the patient:] {patient}
with {patient} [as the patient/on the list/in the chair/on the bed]
[, so says/, as told by/, in the words of/, a patient named] {patient}
[while treating/helping/examining/in the care of/with a look at] the patient {patient}
on {date}
[, date:/, the date is/, day:/, the day being/, dated/, the visit was on/, seen on] {date}
[dated/as of/during the visit on/during the talk on/in the office hours of/at the check-up of] {date}
with {date} as [the date/the day/the day of the visit]
[on the day of/in a visit on/after an appointment on/in a note of] {date}
with {doctor} [on duty/in charge/as doctor/at the desk]
[in the care of/in the rooms of/in the practice of/under the eyes of/on the advice of/by order of/thanks to/in a talk with] {doctor}
[, doctor:/, seen by/, treated by/, the doctor being/, signed by/, says/, so writes/, whose doctor is] {doctor}
[consulting/visiting/seeing/asking/trusting/after talking to] {doctor}
[, sent to/, a patient of/, a case for/, looked after by/, examined by] {doctor}
with {symptom}
[for/against/because of/due to/over/on account of/owing to/in spite of] {symptom}
[complaining of/plagued by/weak from/showing/fighting/struggling with/having/describing] {symptom}
[, complaint:/, reason:/, trouble:/, the complaint being/, what hurts:/, problem:/, the trouble is] {complaint}
[, who mentions/, who has had/, who feels/, who cannot get rid of/, whose complaint is/, who woke up with] {symptom}
[after days of/after a week of/after a night of/with a case of/with signs of] {complaint}
[taking/receiving/swallowing/to get/given/now using/in need of/treated with/leaving with/helped by] {medicine}
[, medicine:/, remedy:/, drug:/, prescribed:/, therapy:/, the remedy being/, the medicine is/, to be taken:] {medicine}
with [a prescription for/a pack of/a supply of/a dose of/the advice to take/orders to take] {medicine}
[thanks to/on/by means of/with the help of/through] the [medicine/remedy/drug] {medicine}
[, who takes/, who now uses/, who was put on/, who got/, who should take/, who is better with] {medicine}
[, and/, and so/, who] [left with/walked out with/went off with] {medicine}
[taking/given/on a dose of/using] {medicine} [against/for/because of] {symptom}
[examined/received/treated/welcomed/looked at] by {doctor} on {date}
[with/after] a visit to {doctor} on {date}"""),
)
