"""Families of labelled phrases: what messages of a class say. A part of each list is held back for the test split.

A family has a noun for what its labels are (`topic`, `intent`) and a form of its phrases: clauses that stand inside of
sentences, or whole sentences.
"""

from dataclasses import dataclass

from rtlang.model.embedded.phrases import Phrases, phrases


@dataclass(frozen=True, slots=True)
class Family:
    """Labels of one kind. `frames` take a phrase in the field `{}`, a name in `{name}`; `{cap}` is the phrase, capital first."""

    noun: str
    frames: Phrases
    labels: dict[str, Phrases]


REQUEST = phrases(
    "Hi, {}.|{cap}. Please help, thanks, {name}.|Hello, I am {name} and {}.|{cap}!|{cap}.|Good morning, {}. {name}|"
    "Dear team, {}. Regards, {name}|Hello, {}. Can you help?|{cap}. What can I do?|My name is {name}. {cap}.|"
    "Sorry to bother you, but {}.||Good evening, {}. Yours, {name}|Hello team, {}. Thank you, {name}|{name} writes: {}."
)
REPORT = phrases(
    "{cap}.|{name} said that {}.|Today {}.|I read that {}.|{cap}, said {name}.|News: {}.|Yesterday I heard that {}.|"
    "In short: {}.||{name} has told us that {}.|We heard that {}.|It says here that {}."
)
COMMAND = phrases(
    "{cap}|{cap}.|{cap}, please.|Hey, {}.|Hi, {}.|{name} asks: {}.|OK, {}||Hello, {}.|{cap}, thanks.|Now {}."
)
SENTENCE = phrases('{cap}.|{name} said: "{cap}."|{cap}!|{name}: {cap}.||{name} wrote: "{cap}."|"{cap}."')
BARE = phrases("{}|{cap}|{cap}.||{}.")

TEAM = {
    "billing": phrases(
        "I was charged twice|my invoice is wrong|how do I pay my bill|there is an extra fee on my card|"
        "the bill is too high|"
        "I need a receipt for my payment|my card was charged for nothing|I do not understand my bill|"
        "can I pay next month|"
        "the invoice has the wrong name|my payment did not go through|why do I pay more this month|"
        "you charged my card again||"
        "my bill shows an extra charge|I was charged too much this month|I need an invoice for my payment|"
        "my card payment is wrong"
    ),
    "shipping": phrases(
        "my package has not arrived|where is my order|can you deliver faster|the tracking number does not work|"
        "please change the delivery address|when will my order arrive|the package is late|"
        "the driver did not find my house|"
        "my order was sent to the wrong city|how long does the delivery take|can I pick up the package|"
        "it was never delivered||"
        "my order has not arrived|where is my package|the delivery is late|when will the package be delivered"
    ),
    "returns": phrases(
        "I want to send it back|how do I return this item|I need a refund for a broken item|the wrong item came|"
        "can I exchange it for another size|the shoes are too small and I want another size|it does not fit|"
        "I changed my mind and want to return it|the cup was broken when I opened the box|where do I send it back to|"
        "I would like to exchange it|how many days do I have to return it||how do I send this item back|"
        "I want to exchange the broken item|can I return it for a refund|I would like another size"
    ),
    "technical": phrases(
        "the app crashes|the screen stays black|I cannot connect to the network|the update failed|"
        "the page does not load|"
        "it shows an error when I start it|the button does nothing|my printer is offline|the sound does not work|"
        "it freezes after a minute|the app is very slow|the battery is empty after an hour|"
        "the camera shows only a black screen||"
        "the app shows an error|the screen freezes|it crashes after the update|I cannot connect the printer"
    ),
    "account": phrases(
        "I forgot my password|how do I change my email|please delete my profile|I cannot log in|my account is locked|"
        "I want to update my user name|someone else uses my account|I want to close my account|"
        "how do I reset my password|"
        "my login does not work|I need to change my phone number in my profile|I have two accounts||"
        "I cannot log in to my account|how do I change my password|please delete my account|"
        "my profile has the wrong email"
    ),
    "sales": phrases(
        "how much is the big one|do you have it in blue|I want to buy ten of them|is there a discount for schools|"
        "which model is right for me|when will it be back in stock|do you sell spare parts|can I get an offer|"
        "what does the new model cost|I would like to order a hundred|is it on sale next week|"
        "do you have a cheaper one||"
        "how much is the new model|do you sell it in blue|is there a discount if I buy ten|which one is cheaper"
    ),
    "jobs": phrases(
        "I want to work for you|do you have an open position|here is my application|are you looking for a cook|"
        "when can I start to work|I sent my resume last week|I am looking for a job|is the job still open|"
        "can I come for an interview|what is the salary|do you take students for the summer|"
        "I would like to join your team||"
        "is the position still open|I sent my application last week|I want to work as a cook|when is the interview"
    ),
    "feedback": phrases(
        "your new page looks great|I have an idea for a new button|your staff was very helpful|"
        "thank you for the fast answer|"
        "I think the menu should be simpler|I just want to say well done|it would be nice to have a dark mode|"
        "the new design is easier to read|please add more colors|my idea is a map of all shops|keep up the good work|"
        "I want to praise your driver||I want to praise your staff|I have an idea for the menu|"
        "the new page is easier to read"
    ),
}
ASSISTANT = {
    "weather": phrases(
        "tell me the weather for tomorrow|check if it will rain today|show the forecast for Rome|"
        "say how cold it is outside|"
        "tell me if I need an umbrella|give me the temperature in Oslo|look up the weather for the weekend|"
        "find out if it will snow tonight|show me the wind speed||tell me if it will snow tomorrow|"
        "show the weather for tonight"
    ),
    "timer": phrases(
        "set a timer for ten minutes|start a timer for the eggs|count down from five minutes|remind me in half an hour|"
        "wake me up at seven|set an alarm for six|stop the timer|tell me when twenty minutes have passed|"
        "set the clock to ring at noon||set a timer for the soup|set an alarm for seven|remind me in ten minutes"
    ),
    "music": phrases(
        "play some jazz|play the next song|turn the music up|stop the song|play my favorite album|skip this song|"
        "find a song for dancing|play something quiet|sing me a song|put on the radio||play some quiet music|"
        "play my favorite song|skip the next song"
    ),
    "message": phrases(
        "tell Ada that I will be late|send a message to Tom|write to my brother that dinner is ready|"
        "text my boss that I am sick|"
        "answer Nora with yes|send Max a note|inform my mother that I am home|write an email to the school|"
        "reply to the last message||send a message to my brother|tell my boss that I am home|"
        "write to Tom that I am late"
    ),
    "booking": phrases(
        "book a table for four|reserve a room for two nights|book a flight to Rome|get me two tickets for the concert|"
        "reserve a seat by the window|book a train to Oslo for Monday|find a hotel near the sea|"
        "cancel my table for tonight|"
        "book a taxi for nine||book a room for four nights|reserve a table by the window|get me two tickets to Rome"
    ),
    "shopping": phrases(
        "add milk to my list|put eggs on the shopping list|order more paper|buy a new lamp|remove bread from the list|"
        "what is on my shopping list|order the same coffee again|add six apples to my cart|buy two bars of soap||"
        "add bread to the shopping list|order more milk|put six eggs on my list"
    ),
    "translation": phrases(
        "translate good morning into French|say thank you in Spanish|what is the German word for bread|"
        "how do you say house in Italian|translate this letter into English|what does this French word mean|"
        "say hello in four languages|put this text into Spanish||translate thank you into Italian|"
        "say good morning in German"
    ),
    "math": phrases(
        "add twelve and seven|what is half of ninety|multiply six by eight|work out ten percent of fifty|"
        "divide forty by five|what is the square of nine|subtract three from twenty|how much is two times seven||"
        "add six and eight|multiply nine by two|what is half of forty"
    ),
    "joke": phrases(
        "tell me a joke|make me laugh|say something funny|tell the one about the cat again|cheer me up with a joke|"
        "tell a joke about robots|do you know a funny story|tell me your best joke||tell me something funny|"
        "tell a joke about a cat"
    ),
    "lights": phrases(
        "turn on the light|make the kitchen brighter|switch off the lamp|turn the bedroom light to blue|dim the light|"
        "light up the hall|turn off all the lights|make it darker in here||switch off the kitchen light|"
        "turn on the lamp in the hall"
    ),
}
TOPIC = {
    "sports": phrases(
        "the team won the match|she scored two goals|the race starts at noon|he trained for the marathon|"
        "the coach was proud|"
        "the goalkeeper was injured|they lost the final game|the swimmer broke a record|the players ran onto the field|"
        "the tennis match took four hours|a fan threw his cap on the field|the champion kept her title|"
        "the league has a new referee||"
        "the team lost the match|she won the race|he broke the marathon record|the coach trained the goalkeeper"
    ),
    "food": phrases(
        "the soup needs more salt|bake the bread for an hour|the pasta was delicious|add two eggs and some milk|"
        "the cook used fresh basil|the cake is in the oven|the curry was too hot|peel the potatoes first|"
        "he fried the onions|"
        "the new cafe serves pancakes|she cut the cheese into cubes|we had rice with beans|the recipe asks for butter||"
        "the soup was delicious|bake the cake for an hour|she fried the potatoes|add butter and some salt"
    ),
    "music": phrases(
        "the band played a new song|she tuned her guitar|the choir sang softly|he wrote a tune for the flute|"
        "the drums were loud|"
        "the concert was sold out|the singer lost her voice|he practices the piano every day|the album has ten songs|"
        "the violin needs new strings|the orchestra played for two hours|the crowd sang along|"
        "the rhythm is easy to learn||"
        "the choir sang a new song|he plays the guitar every day|the band played two songs|the flute was too loud"
    ),
    "travel": phrases(
        "the train leaves at nine|we booked a hotel by the sea|her flight was delayed|they packed their bags|"
        "the border was open|"
        "the bus to the airport is full|he lost his passport|the ship reached the harbor|we took a taxi to the station|"
        "the guide showed us the old town|the journey took three days|their suitcase went to the wrong city|"
        "we saw the island by boat||"
        "the flight leaves at nine|we booked a ship to the island|he lost his bags at the airport|the train was delayed"
    ),
    "weather": phrases(
        "it rained all day|the wind is strong tonight|snow fell on the hills|the sun came out|a storm is coming|"
        "it is foggy|"
        "the temperature fell below zero|dark clouds came from the west|it will be warm and dry|the fog did not lift|"
        "lightning struck the tower|hail damaged the cars|it was the hottest day of the year||snow is coming tonight|"
        "it rained on the hills|the wind was strong all day|it will be cold and foggy"
    ),
    "money": phrases(
        "the bank raised the rate|he paid his rent|prices went up again|she saved ten dollars|the loan was approved|"
        "the tax is due in May|the shares fell by two percent|he keeps his coins in a jar|the budget is too small|"
        "she got a better salary|the company made a profit|he owes me twenty dollars|they cut the fees||"
        "the bank approved the loan|she paid the tax|prices fell by two percent|he saved his salary"
    ),
    "health": phrases(
        "the doctor gave her a pill|he has a fever|wash your hands often|the nurse took his blood|she broke her arm|"
        "the hospital has new beds|a cold lasts a week|he should sleep more|her tooth hurts|the patient feels better|"
        "the medicine tastes bitter|the vaccine is safe|too much sugar is bad for the teeth||"
        "the nurse gave him a pill|the doctor took her blood|her arm hurts|the patient has a fever"
    ),
    "science": phrases(
        "the probe found a new planet|water boils at a hundred degrees|the experiment failed twice|"
        "scientists measured the light of a star|the cell divides in two|the rocket reached the moon|"
        "light is faster than sound|"
        "they found bones of an old animal|the robot walked on its own|atoms are very small|"
        "the study was published in June|"
        "the laboratory tested a new metal||the experiment measured the light|the rocket found a new planet|"
        "scientists tested the robot"
    ),
    "politics": phrases(
        "the president gave a speech|the vote was close|the new law was passed|the minister resigned|"
        "the mayor opened the hall|"
        "the parties could not agree|people marched for their rights|the election is in May|"
        "the council meets on Monday|"
        "the senator answered questions|the treaty was signed|the government fell||the minister gave a speech|"
        "the new law was signed|the mayor lost the election|the council passed the treaty"
    ),
    "school": phrases(
        "the exam was hard|she did her homework|the class learns about Rome|the teacher praised him|he passed the test|"
        "the lesson starts at eight|the students wrote an essay|she forgot her pencil case|the summer term is over|"
        "he learns ten words a day|the pupils went to the library|her grades got better||the teacher wrote the exam|"
        "the students passed the test|the class did the homework|the lesson was hard"
    ),
    "animals": phrases(
        "the cat sleeps on the sofa|a fox came into the garden|the dog barks at the door|the bird built a nest|"
        "the whale came up for air|the horses ran over the hill|a mouse ate the cheese|the goat climbed the rock|"
        "the puppy lost a tooth|bees make honey|the zoo has two new lions|the owl hunts at night||"
        "the dog sleeps in the garden|"
        "a bird ate the honey|the fox hunts at night|the goat ran over the hill"
    ),
    "art": phrases(
        "the painting shows a blue boat|she drew a portrait|the museum bought a statue|he mixes his colors by hand|"
        "the gallery opens on Sunday|the sculptor works in stone|the poem has four verses|"
        "the painter signed his picture|"
        "the dancers wore red|the play was written in spring|her photographs hang in the hall|"
        "the frame is made of gold||"
        "the painter drew a portrait|the gallery bought a painting|the statue is made of stone|"
        "the museum shows her photographs"
    ),
}
