import pytest

from omni_neuron.distributed.planner.job import make_job
from omni_neuron.distributed.planner.layout_option import parse_layout
from omni_neuron.distributed.planner.model_files import load_model
from omni_neuron.runtime.errors import InputError

JOB = make_job(load_model("wan2.2-t2v-a14b"))
SMALL = make_job(load_model("wan2.2-t2v-a14b"), 480, 832)


def test_degrees_alone_mean_as_published():
    choice = parse_layout("tp=4,cp=8,cfg=2", JOB)
    layout = choice.layout
    assert (layout.tp, layout.ulysses, layout.ring, layout.cfg, layout.vae) == (4, 1, 8, 2, 32)
    assert layout.text_encoder == "world"
    assert (choice.attention, choice.resident_experts, choice.weight_dtype) == ("gather", 2, "bf16")
    assert parse_layout("tp=4,cp=8,cfg=2", SMALL).layout.vae == 16


def test_every_key_is_heard():
    text = "tp=2, ulysses=4, ring=4, cfg=2, vae=8"
    text += ", resident_experts=1, weight_dtype=fp8, text_encoder_group=tp_cp"
    choice = parse_layout(text, JOB)
    layout = choice.layout
    assert (layout.tp, layout.cp, layout.ulysses, layout.ring, layout.cfg, layout.vae) == (2, 16, 4, 4, 2, 8)
    assert layout.text_encoder == "tp_cp"
    assert (choice.attention, choice.resident_experts, choice.weight_dtype) == ("ring", 1, "fp8")
    assert parse_layout(f"{text},attention=gather", JOB).attention == "gather"


def test_a_world_that_does_not_divide_the_text_encoder_leaves_it_to_the_widest_group_that_does():
    assert parse_layout("tp=2,cp=3", JOB).layout.text_encoder == "tp"
    with pytest.raises(InputError, match=r"text_encoder_group=world of 6 ranks .* nearest choice is tp\."):
        parse_layout("tp=2,cp=3,text_encoder_group=world", JOB)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"layout='' must be key=value"),
        ("tp=4,cpp=8", r"layout='cpp=8' .* the nearest is cp\."),
        ("tp=4,cp", r"layout='cp' must be key=value"),
        ("tp=4,tp=8", r"must name tp once"),
        ("tp=four", r"tp='four' must be an integer .* nearest choice is 1\."),
        ("tp=0", r"tp=0 must be at least 1: the nearest choice is 1\."),
        ("cp=8,ulysses=3", r"ulysses=3 x ring=2 must be cp=8"),
        ("tp=16", r"tp=16 must divide heads=40 .* tp=8\."),
        ("tp=5", r"tp=5 must divide ffn=13824 .* tp=4\."),
        ("cfg=3", r"cfg=3 must be at most 2.* cfg=2\."),
        ("tp=8,ulysses=8", r"ulysses=8 must be at most the 5 heads .* ulysses=5"),
        ("tp=4,vae=3", r"vae=3 must divide the 4 ranks"),
        ("resident_experts=3", r"resident_experts=3 must be 1 to 2.* nearest valid choice is 2\."),
        ("weight_dtype=int4", r"weight_dtype='int4' must be one of bf16, fp8\."),
    ],
)
def test_bad_text_is_one_sentence(text, message):
    with pytest.raises(InputError, match=message):
        parse_layout(text, JOB)


@pytest.mark.parametrize("key", ["tp", "cp", "ulysses", "ring", "cfg", "vae"])
def test_degrees_beyond_any_machine_are_refused_before_anything_is_built_of_them(key):
    with pytest.raises(InputError, match=rf"{key}=10+ must be at most 4096: use a smaller one\."):
        parse_layout(f"{key}={10**400}", JOB)
