"""More whole requests for the tools of messages and the office: the name of a tool, then what people say when they mean it."""

REQUESTS = """
send_message
I can't [reach/get hold of] {to}, so leave a message there: {text}.
Could you let {to} know that {text}? [They're waiting/I'm busy].
msg {to}: {text} [/thx/asap]
{to} has no idea that {text}, so [send a text/drop a message].
Before {to} [worries/leaves/gets angry], pass on that {text}.
{text}. That's what I'd like {to} to [read/find] in a text message.
[Fire off/Shoot] a quick text to {to}, saying that {text}.
It's only fair that {to} [learns/hears] from me that {text}.
Since my hands are [full/dirty], text {to} on my behalf: {text}.
My message is that {text}, and it's [meant/intended] for {to}.
[Sorry/Please], be my messenger and report to {to} that {text}.
Has anyone told {to} that {text}? If not, [send word/message them].
In case {to} [asks/wonders], I want them to get this message now: {text}.
To be delivered to {to} [at once/as a text]: "{text}".

send_email
I owe {to} a mail, and {subject} is what should be in the [subject line/heading].
Could a mail headed {subject} [go out/be sent] to {to} for me?
mail {to}, subj: {subject} [/pls/thx]
We need to discuss {subject}, so [get in touch with/write to] {to} by email.
Compose a mail with {subject} as the subject and address it to {to} [/please/when you can]
The people at {to} [wait/are hoping] for an email from me, subject line {subject}.
Since it's about {subject}, [put that/place that] on the subject line of a message to the mailbox {to}
Instead of phoning, I'd [rather/sooner] email {to} under the heading {subject}.
Draft me a mail, [recipient/receiver] {to}, headline {subject}.
My question concerns {subject}. It [should go/goes] by email to {to}
Using {subject} for the subject, please [dispatch/send off] an email to {to}
If {to} is a working address, [send/direct] an email titled {subject} there.
[Sorry/Hi], I have to write to {to} and haven't begun; open a mail on {subject}, will you?
With regard to {subject}, an email [ought/has] to reach {to} today.

call_number
Someone rang me from {number}; [ring back/call them back], please.
Would you mind [trying/phoning] whoever is behind {number}?
tel {number} [/now/pls]
I promised to phone, so [punch in/tap in] {number} and let it ring.
The number's {number}. [Go ahead/Do it], place the call.
Could a call to {number} be [placed/put through]?
I've been meaning to call {number} [all day/for weeks], so let's do it.
If {number} is [busy/engaged], never mind, but try calling.
Pick up the phone and [try/select] {number}.
There's a [missed call/note] with {number} on it, and I want to phone whoever that is.
My phone's keypad is [broken/stuck], so please do the dialling: {number}.
Connect me [by phone/by telephone], the number being {number}.
It's [urgent/an emergency], make the phone ring at {number} without delay.
Because they don't answer mail, I'd like to [telephone/phone up] {number}.

find_contact
I've [mislaid/lost] the details of {name}, are they in my contacts?
Would you happen to have the contact [details/data] of {name}?
contact info {name} [/pls/please]
How can I [get hold of/get in touch with] {name}? Check the address book.
Someone by the name of {name} should be among my contacts, [pull that up/look there].
I must have saved {name} [somewhere/once], dig up the entry.
[Where/Under which number] can {name} be reached?
My address book knows {name}, so [read/tell] me what it says.
The contact card of {name}, [may I see it/bring it up]?
A letter for {name} lies here unaddressed; [search/check] my contacts, would you?
Is there [an entry/a card] on {name} in my contacts?
Since I never learned the number of {name} by heart, [fetch/retrieve] it.
Supposing {name} is someone I [saved/stored] earlier, which contact details are there?
[Scroll/Leaf] through my contacts until you come to {name}.

add_contact
I met {name} yesterday and got a number, {phone}, which should be [kept/saved] in my contacts.
Could {name} be [entered/put] in my address book? The phone is {phone}.
save contact {name} tel {phone} [/pls/thx]
So that I don't lose it: {phone} is how to reach {name}. [Make/Create] a contact.
My new [neighbour/dentist/colleague] is {name}. Enter that as a contact with {phone} for the phone.
{phone} is [new/unknown] to my phone; from now on it should appear as {name}.
[Jot down/Note] the number {phone} in my contacts, next to the name {name}.
I keep {phone} on a scrap of paper, but I'd rather have it in my contacts [filed/listed] under {name}.
Whenever {phone} calls, I want to see the name {name}, so [add/register] that contact.
Let my address book [gain/have] one more entry, {name}, reachable under {phone}.
[Create/Set up] a contact card whose name is {name} and whose number is {phone}.
As {name} isn't among my contacts yet, do [add/include] them along with {phone}.
{name} just gave me a [mobile/phone] number, namely {phone}. Into the contacts, please.
Would you mind [remembering/keeping] a new person for me? {name}, phone {phone}.

delete_contact
I [fell out/broke up] with {name}, so wipe that entry from my contacts.
Could {name} be [erased/struck] from my address book?
contact {name}: delete [/pls/now]
{name} has [moved away/retired], and I don't need those contact details any longer.
Why is {name} [still/even] in my contacts? Out with that.
Never again will I [call/phone] {name}, so drop the contact.
My contacts are too many; start [tidying/cleaning up] by discarding {name}.
[Strike/Scrub] the name {name} off my contact list.
I don't [know/remember] anybody called {name}, please purge that contact.
The number saved for {name} is [dead/wrong], so throw the whole contact out.
Should you come across {name} among my contacts, [get rid of/dispose of] that entry.
I'd [rather not/no longer] have {name} among my contacts.
Lose the contact [card/details] of {name}.
An address book without {name} would be [nicer/better], so erase that person.

video_call
I'd love to see the face of {person} again, so arrange a video call [at/for] {time}.
Could we have {person} on [camera/video] at {time}?
vid call {person}, {time} [/pls/ok]
My camera works now! Ring {person} up on video when it's {time}, [okay/please].
{time} is when {person} is [free/at home], so plan our video chat for then.
Phoning isn't enough, I want to look at {person} on the screen at {time}, [make it so/please].
[Set up/Book] a video meeting for two, {person} and me, beginning {time}.
So that {person} can [show me the baby/see the garden], let's talk by video at {time}.
I promised {person} a video chat, and {time} is what we [agreed on/said].
With {person} I'd rather speak over video than by phone, [try/connect] us at {time}.
When {time} comes round, [open/launch] the camera and dial {person} for a video chat.
[Sorry to be late with this/One more thing]: the video call with {person} is to start at {time}.
Let {person} see me [on screen/over video] from {time} on.
At {time} a face-to-face online with {person} would be [great/good]; start the video then.

send_postcard
It's the birthday of {name}, so a card with "{text}" ought to be [posted/mailed] to {address}.
Could a postcard be sent to {address}? It's for {name}, and I'd like it to [say/read]: {text}.
card -> {name}, {address}, msg: {text} [/pls/thx]
I'm on holiday and {name} hasn't heard from me. Post a card to {address}[/ today] so they learn that {text}.
At {address} lives {name}, who [loves/collects] postcards. Write one that says: {text}.
On the front a nice picture, on the back "{text}". [Recipient/Receiver]: {name}, at {address}.
Please tell {name} on a [postcard/picture postcard] that {text}, and have it delivered to {address}.
{text}: put this on a postcard and let it [travel/go] to {name} at {address}.
Since {name} has no email, let the postman [bring/carry] a card to {address} with the words: {text}.
[Pick/Choose] a pretty card, write "{text}" on it, and post it to {address}, attention {name}.
I [wish/want] to surprise {name} with a card. They live at {address}, and the message is that {text}.
Have {address} printed on a postcard as the address, {name} as the [name/receiver], and as the message: {text}.
Greetings from [the sea/the mountains] for {name}! Get a postcard on its way to {address}, and on it: {text}.
[Stamp and send/Post] one postcard. Words: {text}. Destination: {address}. Who it's for: {name}.

open_website
Someone told me about {url} and I'm [curious/eager], so let's see that page.
Could you pull up {url} in a [new/fresh] tab?
browser -> {url} [/pls/now]
My [ticket/order] is on {url} so please load it
Let's [surf/head over] to {url} and have a look.
Instead of the start page, the browser should [show/display] {url}
The page I'm after is {url} [/please/if it's up]
Type {url} into the [address bar/browser] for me.
I keep [mistyping/forgetting] it, but the address is {url} and I'd like the page up.
Point the browser [at/to] {url}
Is {url} [online/working]? Open it and we'll see.
They say {url} has the [best/latest] news, so navigate there.
If the connection allows it, fetch the [web page/site] {url}
I'd [like/love] to have a look at the website {url} with you.

web_search
I've been wondering about {query}, does the [internet/web] know anything?
Could you [google/research] {query} for me?
search: {query} [/pls/thx]
Nobody here can tell me about {query}, so [consult/ask] the web.
There must be something about {query} [online/on the net], find it.
Run a search engine [over/on] the words {query}.
My [homework/article] deals with {query}. See what turns up online.
[Dig up/Gather] some web pages where {query} is explained.
Which websites [mention/deal with] {query}?
If you [google/search] for {query}, what results come up?
Enter {query} in a search engine and show me the [hits/results].
I [heard/read] about {query} somewhere and would like to look it up online.
{query} is what I need [pages/results] on, so scour the web.
I don't have a link, only the words {query}, so [try/use] a web search.

create_file
I need to keep this, so [start/open up] a new file called {name} whose content is: {text}.
Could "{text}" be [saved/stored] in a fresh file by the name of {name}?
touch {name}, content: {text} [/pls/thx]
There's no {name} yet; [produce/generate] it, with the line "{text}" inside.
Write down that {text}, in a file you [name/call] {name}
{text}. [Preserve/Keep] this sentence in a new file under the name {name}
My script [expects/wants] a file named {name} that contains "{text}", so create one.
Let there be a file {name} in which it [says/stands]: {text}.
[Dump/Type] the words "{text}" to disk as {name}
So that I don't lose the note that {text}, make a file of it, [called/titled] {name}
Into {name}, a file [still to be made/that you create], goes this: {text}.
Instead of a note on paper, I'd like {name} on my disk [reading/stating]: {text}.
With {name} as its filename, [set up/add] a text file that just says: {text}.
The content is "{text}" and the filename is {name} [/please/so write it]

delete_file
The disk is almost full, so [let go of/sacrifice] {name}
Could {name} be [erased/wiped] from the disk?
rm {name} [/pls/now]
Nobody has opened {name} in years, so [trash/bin] it.
I saved {name} by [mistake/accident], please erase that file.
Into the [trash/bin] with {name}, please.
My folder would be [tidier/cleaner] without {name}, so delete that.
Since there's a newer version, the file {name} is [of no use/superfluous], wipe it.
[Erase/Destroy] {name} for good.
If {name} is still on the computer, I [want/need] it gone.
There should be no {name} on this machine [any more/any longer].
What's {name} doing in my [folder/files]? Throw it out.
[Sorry/Oops], that {name} was a test file only, you can remove it again.
I'd [prefer/like] {name} off my hard disk, since it's private.

rename_file
The name {source} says nothing, so call that file {target} [instead/please].
Could {source} be [given/known by] the name {target}?
mv {source} to {target} [/pls/now]
I [misspelled/mistyped] the filename {source}, it should have read {target}
Instead of {source} I want the [file/thing] to be named {target}
What's now {source} should [become/turn into] {target}
{target} is a [better/clearer] name for the file {source}
So that I can find it again, the file named {source} gets the [name/title] {target}
[Swap/Replace] the filename {source} for {target}
My program looks for {target} but the file is called {source} so [rename/relabel] it.
Let {source} bear the filename {target} [/from today/from here on]
Give {target} as the new filename to what was [so far/previously] {source}
Would you mind [renaming/relabelling] a file? From {source} into {target}
I'd like {source} [renamed/to be renamed], and the result must be {target}

open_file
I wrote something in {name} but can't remember what, so [bring it up/open it].
Could {name} be [displayed/put] on the screen?
view {name} [/pls/now]
I'm curious which lines {name} consists of, so [display/open] that file.
What's [written/inside] in {name}? I'd like to see the file.
My notes are in {name} so please [pull up/bring up] that file.
Before the meeting I should [glance/look] through the file {name}
[Load/Launch] {name} in the editor.
The file I was working on yesterday, {name}, I'd like it [open/up] again.
If you find {name} on the disk, [display/show] its content.
I need the numbers that are [kept/stored] in {name} so get the file up.
Have {name} [opened/shown], since I want to check something in that file.
[Double-click/Click] {name} for me, my mouse is broken.
It's all in the file {name} they said, so let's [see/read] it.

print_document
There will be {copies} of us at the meeting, so [run off/print off] as many copies of {title}.
Is the printer ready? Then {title} is what I'd like [out of it/from it], and {copies} copies, if you please.
print {title} x {copies} [/pls/thx]
I'd like to [hand out/give away] {title}, so make {copies} prints.
Let the printer [churn out/produce] {copies} copies of {title}.
Everyone should have {title} on paper, which makes {copies} [printouts/prints].
On paper, please: {title}. [Number/Count] of copies: {copies}.
My eyes prefer paper, so I'd like {title} printed, {copies} [copies/sets] to be exact.
How long would {copies} printouts of {title} take? [Begin/Start] printing anyway.
The class has to read {title}; {copies} copies from the [printer/laser printer] should be enough.
If there's [paper/ink] left, print {title}, {copies} copies in all.
[Sorry/Please], once more the document {title} on paper, and this time {copies} copies.
With {copies} copies of {title} coming out of the printer, I'd be [happy/set].
[Load/Fill] the paper tray and print out {title} for me, in {copies} copies.

create_ticket
Can someone from support [look into/see to] the {device}? It {problem}.
Every morning it's the {device} that {problem}, so I'd like to [file/raise] a support ticket.
ticket pls - {device} - {problem} [/again/since today]
I've tried everything, but the {device} still {problem}; [let/have] the technicians know.
[Sorry to trouble you/I hate to complain], but that {device} of mine {problem} and a ticket should be opened.
Log a fault with IT. The {device} is [affected/broken], what happens is that it {problem}.
Is the help desk [aware/informed] that our {device} in the office {problem}? Raise a ticket if not.
[Raise/File/Log] a ticket because the {device} on my desk {problem}.
Ever since the update the {device} simply {problem}, which the [support team/help desk] ought to hear about.
The {device} again! It {problem}, so [hand/pass] this on to support as a ticket.
A ticket is needed for the {device}, which {problem} [all the time/as of late].
For [the third time/days now], the {device} in our office {problem}. Get me a new ticket.
I can't work with a {device} that {problem}. Submit a fault [report/ticket].
It {problem}, this [wretched/old] {device}, and that calls for a trouble ticket.

close_ticket
Good news, {code} is [fixed/sorted], so the ticket may be closed.
Could ticket {code} be [shut/wrapped up]?
{code} resolved, close [/pls/thx]
The customer is happy with {code}, so nothing [stops/keeps] us from closing that ticket.
Why is ticket {code} still [open/pending]? It was solved long ago.
Since the fault went away [by itself/overnight], you may close out ticket {code}.
I've repaired the thing. [Set/Switch] ticket {code} to closed.
We can [tick off/put away] ticket {code}, the job is finished.
There's nothing left to do on {code}, [end/close] that ticket.
[Sign off/Finalize] ticket {code}, as everything runs again.
If no one objects, ticket {code} [gets/should get] the status closed.
No further [help/work] is needed with {code}, so that ticket should not stay open.
[Sorry/Oops], {code} was a false alarm, so please shut the ticket.
I'd like to see ticket {code} off the list of open ones, because it's [settled/dealt with].

create_user
{name} starts work on Monday, so [set up/prepare] a user account with the email {email}
Could you [let/sign] {name} in as a fresh user, with mail going to {email}?
useradd {name}, mail {email} [/pls/thx]
We've got a new colleague, {name}, who [will need/needs] a login. Use {email} for the email.
Without an account {name} can't [log in/work]. Register them with {email} as the email.
So that {name} gets [access/in], create a user with the mail address {email}
In the user list, [enter/include] {name} and as their email {email}
[Grant/Give] a login to {name}, whose email reads {email}
An intern called {name} has joined us; {email} is the [mail/mailbox] to use for the new account.
Under the email {email} there should be a [new/fresh] user account, full name {name}.
If {name} has no login yet, [generate/make] one and tie it to {email}
The system doesn't know {name}, so enrol them as a [user/new user], contact email {email}
I'd like {name} to be [added/admitted] as a user, and the account's address to be {email}
[Take/Use] {email} as the login email and {name} as the name when you create this account.

book_room
Is {room} free on {date}? If so, [grab/secure] it for a meeting at {time}.
Could {room} be [kept/held] for our team on {date}, starting {time}?
room booking {room}: {date}, {time} [/pls/thx]
Twelve people are coming on {date} at {time}, so we'd better [get/take] the meeting room {room}.
Before someone else [snatches/takes] it, book {room} for {time} on {date}.
I'd like to have {room} as our meeting room, the day being {date} and the [start/hour] {time}.
The interview is on {date}, {time} to be precise, and {room} would be the right room, so [claim/reserve] it.
Our office is too [small/noisy] for the workshop. Get us the room {room} from {time} on {date}.
Make a [booking/reservation]: starting at {time}, on {date}, meeting room {room}.
For {date} I still need a place to meet; {room} at {time} would be [perfect/fine], please reserve.
Put our name [down/on the door] for the room {room}, {time}, {date}.
[Sorry for the short notice/In a hurry], but we'd need to reserve {room}, {time} on {date}.
Nobody else should have {room} on {date} at {time}, because [our board/my group] meets there; make the reservation.
With clients visiting at {time} on {date}, a room like {room} is [a must/needed], so book that one.
"""
