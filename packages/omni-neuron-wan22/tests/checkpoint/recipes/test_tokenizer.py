"""The vocabulary; how transformers reads it is a test of the whole checkpoint."""

from hypothesis import assume, given
from hypothesis import strategies as st

from omni_neuron.wan22.checkpoint.recipes.tokenizer import SPECIAL, WORDS, build_tokenizer

TOKENIZER = build_tokenizer()


def test_special_ids_are_those_of_umt5():
    assert [TOKENIZER.token_to_id(token) for token in ("<pad>", "</s>", "<unk>")] == [0, 1, 2]


def test_every_word_of_the_list_is_one_id():
    for word in WORDS.split():
        assert TOKENIZER.encode(word).tokens == [f"▁{word}", "</s>"]


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20))
def test_no_ascii_word_is_lost(word):
    assume(not any(token in word for token in SPECIAL))
    assert TOKENIZER.decode(TOKENIZER.encode(word).ids) == word


@given(*[st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=6)] * 2)
def test_different_prompts_have_different_ids(first, second):
    same = TOKENIZER.encode(" ".join(first)).ids == TOKENIZER.encode(" ".join(second)).ids
    assert same == (first == second)
