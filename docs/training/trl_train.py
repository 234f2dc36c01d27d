"""Train the gate with TRL on an export of Mneme: supervised, KTO or DPO, as a LoRA adapter.

    pip install torch transformers trl peft datasets
    mem export --out ./data
    python trl_train.py sft ./data --model Qwen/Qwen2.5-3B-Instruct --out ./adapter

METHOD  reads                 needs
sft     sft_pc.parquet        decisions; no label must contradict them
kto     kto.parquet           labels, or replies that could not be read
dpo     dpo.parquet           labels that say otherwise than the gate

max_length is the one setting that must not be left at its default: TRL cuts at 1,024
tokens from the right, a prompt here has up to 8,000, and a completion that was cut away
teaches nothing, silently. Rows that do not fit are dropped and counted below.
"""

import argparse
import json

from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, SFTConfig, SFTTrainer

METHODS = {
    "sft": ("sft_pc.parquet", ["prompt", "completion"], SFTConfig, SFTTrainer),
    "kto": ("kto.parquet", ["prompt", "completion", "label"], KTOConfig, KTOTrainer),
    "dpo": ("dpo.parquet", ["prompt", "chosen", "rejected"], DPOConfig, DPOTrainer),
}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("method", choices=METHODS)
    p.add_argument("data", help="folder that mem export wrote")
    p.add_argument("--model", default="Qwen/Qwen2.5-3B-Instruct", help="name, or folder of a model")
    p.add_argument("--out", default="adapter")
    p.add_argument("--split", default="train", help="train, val or test; all for every row")
    p.add_argument("--max-length", type=int, default=10240, help="tokens of prompt and completion")
    p.add_argument("--max-steps", type=int, default=-1)
    p.add_argument("--batch", type=int, default=2, help="KTO compares rows within a batch: at least 2")
    p.add_argument("--accumulate", type=int, default=8, help="batches a step")
    p.add_argument("--rank", type=int, default=32, help="vLLM must be started with --max-lora-rank of at least this")
    p.add_argument("--cpu", action="store_true")
    a = p.parse_args()

    file, columns, config, trainer = METHODS[a.method]
    with open(f"{a.data}/manifest.json") as f:
        held = {f["name"]: f["rows"] for f in json.load(f)["files"]}
    if not held.get(file):  # datasets refuses a file without rows, and says nothing of why
        raise SystemExit(f"{file} has no rows: see what manifest.json says was left out")
    rows = load_dataset("parquet", data_files=f"{a.data}/{file}", split="train")
    if a.split != "all":
        rows = rows.filter(lambda r: r["split"] == a.split)
    rows = rows.select_columns(columns)

    tokenizer = AutoTokenizer.from_pretrained(a.model)

    def fits(row) -> bool:
        ends = ["chosen", "rejected"] if a.method == "dpo" else ["completion"]
        size = lambda m: len(tokenizer.apply_chat_template(m, tokenize=True, return_dict=True)["input_ids"])
        return all(size(row["prompt"] + row[e]) <= a.max_length for e in ends)

    whole = rows.filter(fits)
    print(f"{len(whole)} rows of {len(rows)} fit into {a.max_length} tokens")
    if len(whole) == 0:
        raise SystemExit(f"no row of {file} is left: see what manifest.json says was left out")

    more = {}
    if a.method == "kto":
        good = sum(whole["label"])
        bad = len(whole) - good
        # Both kinds must weigh about the same in sum (KTO, section 4.1: between 1:1 and 4:3).
        if good and bad:
            more = {"desirable_weight": max(1.0, bad / good), "undesirable_weight": max(1.0, good / bad)}
    args = config(
        output_dir=a.out, max_length=a.max_length, max_steps=a.max_steps, per_device_train_batch_size=a.batch, gradient_accumulation_steps=a.accumulate,
        learning_rate=1e-4 if a.method == "sft" else 5e-6, num_train_epochs=1, logging_steps=1, save_strategy="no", report_to="none", seed=7,
        use_cpu=a.cpu, bf16=not a.cpu, gradient_checkpointing=not a.cpu, **more,
    )
    # Attention and MLP only: vLLM loads no adapter with trained embeddings or lm_head.
    lora = LoraConfig(
        r=a.rank, lora_alpha=2 * a.rank, task_type="CAUSAL_LM", target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    )
    t = trainer(model=AutoModelForCausalLM.from_pretrained(a.model), args=args, train_dataset=whole, processing_class=tokenizer, peft_config=lora)
    done = t.train()
    t.save_model(a.out)
    print(f"{done.global_step} steps, loss {done.training_loss:.4f}, adapter in {a.out}")


if __name__ == "__main__":
    main()
