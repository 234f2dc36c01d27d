"""Reads an export with the trainers' own code and the configurations of docs/training:
trainers.py FOLDER DOCS MODEL. A trainer that is not installed is named and left out."""

import os
import shutil
import sys

import yaml
from datasets import load_dataset
from transformers import AutoTokenizer

data, docs, model = sys.argv[1:]


def rows(name):
    return load_dataset("parquet", data_files=os.path.join(data, name), split="train")


def llamafactory():
    from llamafactory.data.converter import get_dataset_converter
    from llamafactory.data.parser import get_dataset_list

    class Arguments:
        media_dir = None

    shutil.copy(os.path.join(docs, "dataset_info.json"), data)
    for name, ends in (("mneme_sft", 1), ("mneme_kto", 2), ("mneme_dpo", 2)):
        attr = get_dataset_list([name], data)[0]
        convert = get_dataset_converter(attr.formatting, attr, Arguments())
        n = 0
        for r in rows(attr.dataset_name):
            o = convert(r)  # of what it takes for broken it empties prompt and response
            assert len(o["_prompt"]) == 1 and len(o["_response"]) == ends and o["_system"], (name, o)
            assert any("<check>" in m["content"] or "hard to judge" in m["content"] for m in o["_response"]), (name, o)
            n += 1
        print("llamafactory", name, n, "rows")


def axolotl():
    from axolotl.prompt_strategies.chat_template import load
    from axolotl.utils.dict import DictDefault

    with open(os.path.join(docs, "axolotl.yaml")) as f:
        conf = yaml.safe_load(f)
    tokenizer = AutoTokenizer.from_pretrained(model)
    strategy = load(tokenizer, DictDefault({**conf, "chat_template": "tokenizer_default", "train_on_inputs": False}), DictDefault(conf["datasets"][0]))
    n = 0
    for r in rows(os.path.basename(conf["datasets"][0]["path"])):
        t = strategy.tokenize_prompt({"messages": r["messages"]})
        trained = tokenizer.decode([i for i in t["labels"] if i != -100])
        want = r["messages"][-1]["content"]
        assert want in trained and "limit of queue" not in trained.replace(want, ""), trained
        n += 1
    print("axolotl", n, "rows")


done = 0
for check in (llamafactory, axolotl):
    try:
        check()
        done += 1
    except ImportError as e:
        print(f"{check.__name__} is not installed: {e}")
print(f"{done} trainers read it")
