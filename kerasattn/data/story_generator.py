"""Small worlds in which people walk about and carry things, told in sentences, with questions.

The kinds of stories are those of bAbI's tasks, their words and sentences are our own. Where the
published stories are up to 10, 88, 320, 126, 26 and 8 sentences long (tasks 1, 2, 3, 5, 6, 15),
those made here are up to 10, 88, 320, 126, 10 and 8 long.
"""

import numpy as np

from kerasattn.data.stories import StoryQuestion, words_of

PEOPLE = ("Anna", "Ben", "Clara", "David")
ROOMS = ("library", "workshop", "cellar", "attic", "pantry", "balcony")
THINGS = ("lamp", "letter", "apple")
GO = ("went to", "walked to", "hurried to", "returned to")
TAKE = ("took", "picked up", "fetched", "lifted")
DROP = ("dropped", "put down", "left", "let go of")
GIVE = ("gave", "handed", "passed")
KINDS = {"fox": "foxes", "goose": "geese", "hare": "hares", "hound": "hounds"}
ANIMALS = ("Rufus", "Molly", "Otto", "Pippa")
QUESTIONS_PER_STORY = 5
# Of a task: sentences told at least before each question, more of them on average, at most in all.
LENGTHS = {1: (2, 0, 10), 2: (2, 4, 88), 3: (4, 21, 320), 5: (2, 4, 126), 6: (2, 0, 10)}


class World:
    """Where everybody and everything is, what was told, and which sentences told it."""

    def __init__(self, random):
        self.random, self.sentences = random, []
        self.rooms, self.went = {}, {}  # of people, and the sentences that said so
        self.holders = {}  # thing -> person
        self.trails = {}  # thing -> list of (room, the sentences that say it was there)
        self.taken = {}  # thing -> the sentence of who last took it
        self.gift = None  # the last: giver, thing, taker, sentence

    def pick(self, options):
        return options[self.random.integers(len(options))]

    def tell(self, text):
        self.sentences.append(words_of(text))
        return len(self.sentences) - 1

    def go(self):
        person = self.pick(PEOPLE)
        room = self.pick([r for r in ROOMS if r != self.rooms.get(person)])
        told = self.tell(f"{person} {self.pick(GO)} the {room}.")
        self.rooms[person], self.went[person] = room, told
        for thing in (t for t, holder in self.holders.items() if holder == person):
            self._see(thing, room, (self.taken[thing], told))

    def take_or_drop(self):
        """Somebody whose room is known takes a thing that is free, or puts one down."""
        held = list(self.holders)
        if held and self.random.random() < 0.4:
            thing = self.pick(held)
            person = self.holders.pop(thing)
            told = self.tell(f"{person} {self.pick(DROP)} the {thing}.")
            room, _ = self.trails[thing][-1]
            self.trails[thing][-1] = (room, (told, self.went[person]))
            return
        thing = self.pick(THINGS)
        where = self.trails[thing][-1][0] if thing in self.trails else None
        near = [p for p, room in self.rooms.items() if where in (None, room)]
        if thing in self.holders or not near:
            self.go()
            return
        person = self.pick(near)
        told = self.tell(f"{person} {self.pick(TAKE)} the {thing}.")
        self.holders[thing], self.taken[thing] = person, told
        self._see(thing, self.rooms[person], (told, self.went[person]))

    def _see(self, thing, room, told):
        trail = self.trails.setdefault(thing, [])
        if trail and trail[-1][0] == room:
            trail[-1] = (room, told)
        else:
            trail.append((room, told))


# === Questions: text, answer, supporting sentences; None where there is nothing to ask ===
def _where_is_somebody(world):
    person = world.pick(list(world.rooms))
    return f"Where is {person}?", world.rooms[person], (world.went[person],)


def _where_is_something(world):
    things = list(world.trails)
    if not things:
        return None
    thing = world.pick(things)
    room, told = world.trails[thing][-1]
    return f"Where is the {thing}?", room, tuple(sorted(set(told)))


def _where_was_something(world):
    found = []
    for thing, trail in world.trails.items():
        if len(trail) > 1:
            (before, told_before), (room, told) = trail[-2:]
            found.append((thing, before, room, tuple(sorted({*told_before, *told}))))
    found = [row for row in found if len(row[-1]) == 3]
    if not found:
        return None
    thing, before, room, told = world.pick(found)
    return f"Where was the {thing} before the {room}?", before, told


def _is_somebody_there(world):
    person = world.pick(list(world.rooms))
    room = world.rooms[person]
    asked = room if world.random.random() < 0.5 else world.pick([r for r in ROOMS if r != room])
    answer = "yes" if asked == room else "no"
    return f"Is {person} in the {asked}?", answer, (world.went[person],)


# === Stories ===
def _walks(world, task):
    if task in (1, 6) or world.random.random() < 0.55:
        world.go()
    else:
        world.take_or_drop()


def _gifts(world, task):
    """Somebody gives somebody something; between, they walk about and take things."""
    pairs = [
        (thing, giver, taker)
        for thing, giver in world.holders.items()
        for taker, room in world.rooms.items()
        if taker != giver and room == world.rooms[giver]
    ]
    if not pairs or world.random.random() < 0.5:
        _walks(world, task)
        return
    thing, giver, taker = world.pick(pairs)
    told = world.tell(f"{giver} {world.pick(GIVE)} the {thing} to {taker}.")
    world.holders[thing], world.taken[thing] = taker, told
    world.gift = (giver, thing, taker, told)


def _who_gave_what(world):
    if world.gift is None:
        return None
    giver, thing, taker, told = world.gift
    text, answer = world.pick(
        [
            (f"Who gave the {thing} to {taker}?", giver),
            (f"What did {giver} give to {taker}?", thing),
            (f"Who did {giver} give the {thing} to?", taker),
            (f"Who received the {thing}?", taker),
        ]
    )
    return text, answer, (told,)


ASK = {
    1: _where_is_somebody,
    2: _where_is_something,
    3: _where_was_something,
    5: _who_gave_what,
    6: _is_somebody_there,
}
TASKS = (*ASK, 15)


def _story(task, random):
    """The questions of one story."""
    world, questions = World(random), []
    least, more, most = LENGTHS[task]
    move = _gifts if task == 5 else _walks
    asked = None
    while len(questions) < QUESTIONS_PER_STORY:
        wanted = len(world.sentences) + least + (random.geometric(1 / (1 + more)) - 1)
        while len(world.sentences) < min(wanted, most) or (asked := ASK[task](world)) is None:
            if len(world.sentences) == most:
                return questions  # nothing more to ask about
            move(world, task)
        text, answer, supporting = asked
        told = (tuple(world.sentences), words_of(text), answer.lower(), supporting)
        questions.append(StoryQuestion(*told))
    return questions


def _deduction(random):
    """Four kinds that fear one another, an animal of each, and a question about each animal."""
    kinds = random.permutation(list(KINDS)).tolist()
    feared = dict(zip(kinds, random.choice(kinds, len(kinds)).tolist()))
    feared = {
        a: b if a != b else kinds[(kinds.index(a) + 1) % len(kinds)] for a, b in feared.items()
    }
    of = dict(zip(ANIMALS, random.permutation(kinds).tolist()))
    facts = [(kind, f"{KINDS[kind]} are afraid of {KINDS[feared[kind]]}.") for kind in kinds]
    facts += [(animal, f"{animal} is a {kind}.") for animal, kind in of.items()]
    facts = [facts[i] for i in random.permutation(len(facts))]
    places = {what: place for place, (what, _) in enumerate(facts)}
    sentences = tuple(words_of(text) for _, text in facts)
    questions = []
    for animal in random.permutation(ANIMALS):
        kind = of[animal]
        told = tuple(sorted((places[animal], places[kind])))
        question = words_of(f"What is {animal} afraid of?")
        questions.append(StoryQuestion(sentences, question, feared[kind], told))
    return questions


def generate_stories(task, num_questions, seed=None):
    """Questions about stories of the kind of one of bAbI's tasks.

    Five questions belong to a story (four of task 15), each after more sentences.

    Args:
        task: 1, 2 or 3, where somebody or something is or was, which follows from so many
            sentences; 5, who gave what to whom; 6, yes or no; 15, deduction.
        num_questions: int >= 1.
        seed: int, None or numpy Generator.

    Returns:
        list of `StoryQuestion`.

    Raises:
        ValueError: for another task, or no questions.

    Example:
    >>> from kerasattn.data import generate_stories
    >>> first = generate_stories(1, 5, seed=0)[0]
    >>> first.question[:2], len(first.sentences), len(first.supporting)
    (('where', 'is'), 2, 1)

    Source: https://arxiv.org/abs/1502.05698 (Weston et al. 2015), section 3.
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {TASKS}, got {task!r}.")
    if num_questions < 1:
        raise ValueError(f"num_questions must be at least 1, got {num_questions}.")
    random, questions = np.random.default_rng(seed), []
    while len(questions) < num_questions:
        questions += _deduction(random) if task == 15 else _story(task, random)
    return questions[:num_questions]
