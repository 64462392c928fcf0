"""A T5-like tokenizer: common words have an id of their own, every other word is spelt."""

import string
from typing import Any

from tokenizers import (  # type: ignore[import-untyped]
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
)

from omni_neuron.wan22.models.config import TEXT_LENGTH

SPECIAL = ("<pad>", "</s>", "<unk>")  # ids 0, 1 and 2, as in UMT5
SPACE = "▁"
# Characters beyond ASCII: accented Latin letters, and punctuation that editors put in.
LETTERS = "".join(chr(code) for code in range(0xC0, 0x180) if chr(code).isalpha())
PUNCTUATION = "¡¿«»–—‘’“”…、。，！？"

WORDS = """
a about above across after again air all along alone among an ancient and animal apple around as
ascending at autumn away baby back background ball balloon bamboo band bank bar barn basket bay beach
bear beautiful bed bee before behind bell below bench beside between bicycle big bird black blade blanket
blossom blowing blue boat body book bottle bowl box boy branch bread breeze bridge bright broken brown
brush bubble bucket building burning bus busy butterfly by cafe cake calm camera candle car carpet
cartoon castle cat cave chair changing chasing child church cinematic circle city classroom clean clear
cliff climbing clock close cloud coast coat coffee cold color colorful cooking corner countryside couple
cow crab crossing crowd crystal cup curtain dance dancing dark dawn day deep deer desert desk detail dirt
distance diving dog doll dolphin door dragon drawing dream dress drinking driving drone drop drum dry
duck dusk dust eagle earth east eating edge elephant empty engine evening eye face factory falling family
fantasy far farm fast feather female fence field fire firefly fireworks fish fisherman flag flame
floating floor flower fluffy flying fog food foot for forest fountain fox frame fresh friends frog from
frozen fruit futuristic garden gate gentle giant girl glass glowing goat gold golden golf grass gray
green guitar hair hall hand happy harbor hat hawk head heart heavy high hill holding horse hot house
hummingbird hut ice in inside into iron island jar jellyfish jumping jungle kettle key king kitchen kite
kitten knife lake lamp landing landscape lantern large laughing leaf leaves library light lighthouse
lightning lion little living long looking low machine male man many map maple marble market mask meadow
metal middle mirror mist modern monkey moon morning moss mossy motion motorcycle mountain mouse mouth
moving mud music near neon nest new night noisy north ocean octopus of off old on open orange orchard out
outside over owl painting palm panda paper park parrot path penguin people person photo piano pine pink
planet plant plate playing pond portrait pouring puddle puppy purple quiet rabbit race railway rain
rainbow raining rainy realistic red reflection resting rice riding ring rising river road robot rock
rocket rolling roof room rope rose round running rushing sad sail sailing sand scene school sea seagull
seal shadow shallow shark sheep shell shining ship shoe shop shore shot silver singing sitting sky
sleeping slow slowly small smiling smoke smooth snail snow snowy soft space spider spinning splash spring
squirrel stadium stairs standing star static station statue steam steel stone storm stormy street sun
sunflower sunlight sunny sunrise sunset surface surfing sweet swimming swing table tall tea temple tent
the three through tide tiger tiny to tower town toy tractor traffic train tree truck tulip tunnel turning
turtle two umbrella under underwater up valley vase video village violin volcano walking wall warm water
waterfall wave waves weather west wet whale wheat wheel white wild wind window winter with wolf woman
wood wooden world yellow young zebra zoo blurry distorted low-quality overexposed quality ugly worst
"""


def build_tokenizer() -> Tokenizer:
    """Unigram tokenizer that appends ``</s>``; a word in the list always wins over its letters."""
    characters = [*string.ascii_letters, *string.digits, *string.punctuation, *LETTERS, *PUNCTUATION]
    words = sorted(set(WORDS.split()))
    vocabulary = [(token, 0.0) for token in SPECIAL]
    vocabulary += [(SPACE, -10.0)] + [(character, -10.0) for character in characters]
    vocabulary += [(SPACE + word, -5.0) for word in words]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=2, byte_fallback=False))
    space = {"replacement": SPACE, "prepend_scheme": "always", "split": True}
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**space)]
    )
    tokenizer.decoder = decoders.Metaspace(**space)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=["$A", "</s>"], pair=["$A", "</s>", "$B", "</s>"], special_tokens=[("</s>", 1)]
    )
    tokenizer.add_special_tokens(list(SPECIAL))
    return tokenizer


def tokenizer_config() -> dict[str, Any]:
    """``tokenizer/tokenizer_config.json``."""
    return {
        "additional_special_tokens": [],
        "clean_up_tokenization_spaces": True,
        "eos_token": "</s>",
        "extra_ids": 0,
        "model_max_length": TEXT_LENGTH,
        "pad_token": "<pad>",
        "tokenizer_class": "T5Tokenizer",
        "unk_token": "<unk>",
    }
