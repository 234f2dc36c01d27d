#!/usr/bin/env bash
# Trains the gate with verl on an export of Mneme: verl.sh sft|grpo FOLDER [MODEL].
# max_length: the default of 1,024 refuses every prompt of a gate.
set -euo pipefail
method=$1 data=$(cd "$2" && pwd) model=${3:-Qwen/Qwen2.5-3B-Instruct}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case $method in
sft)
  torchrun --standalone --nproc_per_node="${GPUS:-1}" -m verl.trainer.sft_trainer \
    data.train_files="$data/sft.parquet" data.val_files="$data/sft.parquet" data.messages_key=messages \
    data.max_length=10240 data.truncation=error \
    model.path="$model" model.lora_rank=32 model.lora_alpha=64 model.target_modules=all-linear \
    trainer.project_name=mneme-gate trainer.experiment_name=sft trainer.total_epochs=1
  ;;
grpo)
  python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo algorithm.norm_adv_by_std_in_grpo=False \
    data.train_files="$data/verl_rl.parquet" data.val_files="$data/verl_rl.parquet" data.prompt_key=prompt \
    data.max_prompt_length=8192 data.max_response_length=2048 data.truncation=error data.filter_overlong_prompts=True \
    custom_reward_function.path="$here/reward_mneme.py" custom_reward_function.name=compute_score \
    actor_rollout_ref.model.path="$model" actor_rollout_ref.model.lora_rank=32 actor_rollout_ref.model.lora_alpha=64 \
    actor_rollout_ref.model.target_modules=all-linear actor_rollout_ref.rollout.load_format=safetensors \
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=16 actor_rollout_ref.actor.optim.lr=3e-5 \
    trainer.n_gpus_per_node="${GPUS:-1}" trainer.project_name=mneme-gate trainer.experiment_name=grpo
  ;;
*)
  echo "verl.sh sft|grpo FOLDER [MODEL]" >&2
  exit 2
  ;;
esac
