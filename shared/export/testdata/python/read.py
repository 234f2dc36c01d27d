"""Reads every file of an export with pyarrow, datasets, DuckDB and polars, and compares
schemas and contents: read.py FOLDER DOCS. The last line is "read N files"."""

import json
import os
import sys

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import load_dataset

dir = sys.argv[1]
text, flag, whole, real = pa.string(), pa.bool_(), pa.int64(), pa.float64()
message = pa.struct([pa.field("role", text, False), pa.field("content", text, False)])
chat = pa.list_(pa.field("element", message, False))
meta = [(n, text) for n in "id project level stream query_id prompt_version call completion_of split export_id".split()]
# specs/models.md 4.6, column by column; the flat ones of gates.parquet that it names.
WANT = {
    "sft.parquet": [("messages", chat)] + meta,
    "sft_pc.parquet": [("prompt", chat), ("completion", chat)] + meta,
    "kto.parquet": [("prompt", chat), ("completion", chat), ("label", flag)] + meta,
    "kto_messages.parquet": [("messages", chat), ("label", flag)] + meta,
    "dpo.parquet": [("prompt", chat), ("chosen", chat), ("rejected", chat)] + meta,
    "dpo_flat.parquet": [("messages", chat), ("chosen", message), ("rejected", message)] + meta,
    "verl_rl.parquet": [
        ("data_source", text), ("prompt", chat), ("context", text), ("ability", text),
        ("reward_model", pa.struct([pa.field("style", text, False), pa.field("ground_truth", pa.list_(pa.field("element", text, False)), False)])),
        ("extra_info", pa.struct(
            [pa.field(n, t, False) for n, t in [("index", whole), ("split", text), ("question", text), ("t", whole), ("total_t", whole)]]
            + [pa.field("evidence", flag), pa.field("last_evidence", whole), pa.field("label_source", text, False), pa.field("label_conf", real)]
            + [pa.field(n, text, False) for n in "id project query_id level call export_id".split()]
        )),
    ],
}
FLAT = {
    "run_id": text, "project": text, "query_id": text, "level": text, "t": whole, "total_t": whole, "chunk_sha": text, "memory_before_sha": text, "candidate_sha": text,
    "raw_output": text, "update": flag, "exit": flag, "format_ok": flag, "reason": text, "finish_reason": text, "prompt_tokens": whole, "prompt_tokens_own": whole,
    "completion_tokens": whole, "model": text, "adapter": text, "prompt_version": text, "seed": whole, "exit_acted": flag, "latency_ms": real, "evidence": flag, "label_source": text,
    "label_conf": real, "r_update": real, "r_exit": real, "r_format": real, "split": text, "export_id": text, "ended": pa.timestamp("us", tz="UTC"),
}
NULLABLE = {"raw_output", "seed", "evidence", "label_source", "label_conf", "r_update", "r_exit", "r_format"}


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: got {got}, want {want}")


manifest = json.load(open(os.path.join(dir, "manifest.json")))
for f in manifest["files"]:
    name = f["name"]
    path = os.path.join(dir, name)
    table = pq.read_table(path)
    same(f"{name}: rows by pyarrow", table.num_rows, f["rows"])
    if name == "gates.parquet":
        for column, kind in FLAT.items():
            field = table.schema.field(column)
            same(f"{name}: {column}", (field.type, field.nullable), (kind, column in NULLABLE))
    else:
        same(f"{name}: schema by pyarrow", [(c.name, c.type) for c in table.schema], WANT[name])
        same(f"{name}: nullable columns", [c.name for c in table.schema if c.nullable], [])
    for g in range(pq.ParquetFile(path).metadata.num_row_groups):
        group = pq.ParquetFile(path).metadata.row_group(g)
        for c in range(group.num_columns):
            same(f"{name}: compression of {group.column(c).path_in_schema}", group.column(c).compression, "ZSTD")
    rows = table.to_pylist()

    hf = []  # datasets says "corresponds to no data" of a file without rows
    if rows:
        hf = load_dataset("parquet", data_files=path, split="train", cache_dir=os.path.join(dir, ".cache"))
        same(f"{name}: rows by datasets", hf.num_rows, f["rows"])
        same(f"{name}: columns by datasets", hf.column_names, table.schema.names)

    db = duckdb.sql(f"SELECT * FROM read_parquet('{path}')")
    same(f"{name}: columns by duckdb", db.columns, table.schema.names)
    pl = polars.read_parquet(path)
    same(f"{name}: rows by polars", pl.height, f["rows"])

    def norm(v):  # times as microseconds: each reader has its own type
        if isinstance(v, dict):
            return {k: norm(x) for k, x in v.items()}
        if isinstance(v, list):
            return [norm(x) for x in v]
        return int(v.timestamp() * 1e6) if hasattr(v, "timestamp") else v

    want = [norm(r) for r in rows]
    same(f"{name}: contents by datasets", [norm(r) for r in hf], want)
    same(f"{name}: contents by polars", [norm(r) for r in pl.to_dicts()], want)
    if name != "gates.parquet":  # DuckDB needs pytz for times with a zone
        same(f"{name}: contents by duckdb", [dict(zip(db.columns, map(norm, r))) for r in db.fetchall()], want)
    else:
        same(f"{name}: sums by duckdb", duckdb.sql(f"SELECT count(*), count(r_update), coalesce(sum(r_update), 0) FROM '{path}'").fetchall()[0],
             (len(rows), sum(r["r_update"] is not None for r in rows), float(sum(r["r_update"] or 0 for r in rows))))

# The reward of docs/training gives on each prompt what the label says.
sys.path.insert(0, sys.argv[2])
from reward_mneme import compute_score  # noqa: E402

if any(f["name"] == "verl_rl.parquet" for f in manifest["files"]):
    for r in pq.read_table(os.path.join(dir, "verl_rl.parquet")).to_pylist():
        truth = r["reward_model"]["ground_truth"]
        same("evidence", r["extra_info"]["evidence"], truth == ["yes"])
        for check in ("yes", "no"):
            update = "<update>m</update>\n" if r["extra_info"]["call"] == "decide" else ""
            got = compute_score(r["data_source"], f"<think>\nx\n</think>\n<check>{check}</check>\n{update}<next>end</next>", truth, r["extra_info"])
            same("reward", got, {"score": 2.0, "r_update": 1.0, "r_format": 1.0} if [check] == truth else {"score": 0.0, "r_update": -1.0, "r_format": 1.0})
        same("reward of no answer", compute_score(r["data_source"], "Well.", truth, r["extra_info"])["score"], -1.0)
print(f"read {len(manifest['files'])} files")
