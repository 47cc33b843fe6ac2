/* The command that trains a choice's model in its layout: Megatron-LM, torchtitan or MaxText, by the names
 * of their own options (Megatron-LM core 0.14 to 0.20, torchtitan 0.3, MaxText of August 2026). */
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "plan/plan_priv.h"

static void flag(Buf *o, const char *name, double v) { buf_printf(o, " \\\n  %s %.15g", name, v); }
static void word(Buf *o, const char *text) { buf_printf(o, " \\\n  %s", text); }

/* ---- Megatron-LM -------------------------------------------------------------------------------- */

/* Activations, norms and biases. gpt-oss as Megatron's own recipe has it. */
static void megatron_habits(const PlanModel *m, Buf *o) {
  if (m->gated) word(o, "--normalization RMSNorm");
  if (m->biased)
    word(o, "--quick-geglu --glu-linear-offset 1.0 --activation-func-clamp-value 7.0 "
            "--softmax-type learnable");
  else if (m->act == PLAN_RELU2) word(o, "--squared-relu --disable-bias-linear");
  else if (m->gated)
    word(o, m->act == PLAN_GELU ? "--quick-geglu" : "--swiglu"), word(o, "--disable-bias-linear");
  if (m->qkv_bias) word(o, "--add-qkv-bias");
  if (m->qk_norm) word(o, "--qk-layernorm");
}

/* What its options cannot say. */
static void megatron_lacks(const PlanModel *m, Buf *o) {
  if (m->act != PLAN_GELU || !m->gated) return;
  buf_printf(
      o,
      "# It has no option for %s's gate, GELU by tanh: --quick-geglu, GELU by a sigmoid, is as "
      "fast and the\n# nearest. Nor for the scale of its embedding, norms behind blocks and soft "
      "caps: those take a model provider.\n",
      m->name);
}

static void megatron_shape(const PlanModel *m, Buf *o) {
  flag(o, "--num-layers", m->layers);
  flag(o, "--hidden-size", m->hidden);
  flag(o, "--ffn-hidden-size", m->ffn > 0 ? m->ffn : m->expert_ffn);
  flag(o, "--num-attention-heads", m->heads);
  if (!m->latent) flag(o, "--kv-channels", m->head_dim);
  if (m->kv_heads < m->heads)
    word(o, "--group-query-attention"), flag(o, "--num-query-groups", m->kv_heads);
  if (m->latent) {
    word(o, "--multi-latent-attention");
    if (m->q_rank > 0) flag(o, "--q-lora-rank", m->q_rank);
    flag(o, "--kv-lora-rank", m->kv_rank);
    flag(o, "--qk-head-dim", m->head_dim - m->rope_dim);
    flag(o, "--qk-pos-emb-head-dim", m->rope_dim);
    flag(o, "--v-head-dim", m->value_dim > 0 ? m->value_dim : m->head_dim);
  }
  word(o, m->learned ? "--position-embedding-type learned_absolute"
                     : "--position-embedding-type rope");
  megatron_habits(m, o);
  if (!m->tied) word(o, "--untie-embeddings-and-output-weights");
  if (m->window > 0) buf_printf(o, " \\\n  --window-size %.0f,0", m->window);
  if (m->window > 0 && m->period > 0) flag(o, "--window-attn-skip-freq", m->period);
  flag(o, "--vocab-size", m->vocab);
  if (m->experts == 0) return;
  flag(o, "--num-experts", m->experts);
  flag(o, "--moe-router-topk", m->active);
  flag(o, "--moe-ffn-hidden-size", m->expert_ffn);
  if (m->shared_ffn > 0) flag(o, "--moe-shared-expert-intermediate-size", m->shared_ffn);
  if (m->dense_layers > 0)
    buf_printf(o, " \\\n  --moe-layer-freq '([0]*%d+[1]*%d)'", m->dense_layers,
               m->layers - m->dense_layers);
  word(o, "--moe-grouped-gemm"), word(o, "--moe-token-dispatcher-type flex");
}

static void megatron_again(const PlanLayout *l, Buf *o) {
  if (!l->recompute) return;
  if (l->recompute == PLAN_ALL_TAGS) {
    word(o, "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1");
    return;
  }
  word(o, "--recompute-granularity selective --recompute-modules layernorm");
  if (l->recompute & PLAN_TAG(PLAN_UP)) buf_cstr(o, " mlp");
  if (l->ep > 1) buf_cstr(o, " moe_act");
}

static void megatron_numbers(PlanFormat f, Buf *o) {
  word(o, f == PLAN_FP16 ? "--fp16" : "--bf16");
  switch (f) {
  case PLAN_FP8: word(o, "--fp8-format hybrid --fp8-recipe delayed"); break;
  case PLAN_FP8_CURRENT:
  case PLAN_FP8_ROWS: word(o, "--fp8-format hybrid --fp8-recipe tensorwise"); break;
  case PLAN_FP8_BLOCKS: word(o, "--fp8-format e4m3 --fp8-recipe blockwise"); break;
  case PLAN_MXFP8: word(o, "--fp8-format e4m3 --fp8-recipe mxfp8"); break;
  case PLAN_NVFP4: word(o, "--fp4-format e2m1 --fp4-recipe nvfp4"); break;
  default: break;
  }
}

static void megatron(const PlanChoice *c, Buf *o) {
  const PlanLayout *l = &c->job.layout;
  buf_cstr(
      o, "# Megatron-LM wants --lr, --tokenizer-type and --data-path (or --mock-data) as well.\n");
  megatron_lacks(c->job.model, o);
  buf_cstr(o, "torchrun --nproc_per_node \"$GPUS_PER_NODE\" --nnodes \"$NODES\" --node_rank "
              "\"$NODE_RANK\" \\\n"
              "  --master_addr \"$MASTER\" --master_port 29500 \\\n  pretrain_gpt.py");
  megatron_shape(c->job.model, o);
  flag(o, "--tensor-model-parallel-size", l->tp);
  if (l->tp > 1) word(o, "--sequence-parallel");
  flag(o, "--pipeline-model-parallel-size", l->pp);
  if (l->vpp > 1) flag(o, "--num-virtual-stages-per-pipeline-rank", l->vpp);
  flag(o, "--context-parallel-size", l->cp);
  if (l->ep > 1)
    flag(o, "--expert-model-parallel-size", l->ep),
        flag(o, "--expert-tensor-parallel-size", MAX(1, l->etp));
  flag(o, "--micro-batch-size", l->mbs);
  flag(o, "--global-batch-size", l->gbs);
  flag(o, "--seq-length", l->seq);
  flag(o, "--max-position-embeddings", l->seq);
  if (c->steps > 0) flag(o, "--train-iters", c->steps);
  megatron_numbers(l->format, o);
  megatron_again(l, o);
  if (l->zero == PLAN_ZERO_1)
    word(o, "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather");
  buf_cstr(o, " \\\n  --use-mcore-models --transformer-impl transformer_engine \"$@\"\n");
}

/* ---- torchtitan --------------------------------------------------------------------------------- */

/* Its functions that make a model's configuration. */
static const struct {
  const char *model, *module, *config;
} titan_names[] = {{"llama3-8b", "llama3", "llama3_8b"},
                   {"llama3.1-8b", "llama3", "llama3_8b"},
                   {"llama3-70b", "llama3", "llama3_70b"},
                   {"llama3.1-70b", "llama3", "llama3_70b"},
                   {"llama3.1-405b", "llama3", "llama3_405b"},
                   {"qwen3-0.6b", "qwen3", "qwen3_0_6b"},
                   {"qwen3-1.7b", "qwen3", "qwen3_1_7b"},
                   {"qwen3-14b", "qwen3", "qwen3_14b"},
                   {"qwen3-32b", "qwen3", "qwen3_32b"},
                   {"qwen3-30b-a3b", "qwen3", "qwen3_30b_a3b"},
                   {"deepseek-v2-lite", "deepseek_v3", "deepseek_v3_16b"},
                   {"deepseek-v3", "deepseek_v3", "deepseek_v3_671b"},
                   {"gpt-oss-20b", "gpt_oss", "gpt_oss_20b"},
                   {"gpt-oss-120b", "gpt_oss", "gpt_oss_120b"}};

static void titan_model(const PlanModel *m, Buf *o) {
  for (int i = 0; i < COUNT_OF(titan_names); i++)
    if (!strcasecmp(titan_names[i].model, m->name)) {
      buf_printf(o, " --module \"${MODULE:-%s}\" --config \"${CONFIG:-%s}\"", titan_names[i].module,
                 titan_names[i].config);
      return;
    }
  buf_cstr(o, " --module \"${MODULE:?of torchtitan}\" --config \"${CONFIG:?function that makes "
              "the model}\"");
}

static void torchtitan(const PlanChoice *c, Buf *o) {
  const PlanLayout *l = &c->job.layout;
  if (l->format >= PLAN_FP8 && l->format < PLAN_OWN_NUMBERS)
    buf_printf(o,
               "# %s: torchtitan has it in the configuration (CONFIG: a function with %s among the "
               "model's converters), not as an option.\n",
               plan_format_name(l->format),
               l->format == PLAN_MXFP8   ? "MXFP8LinearConverter"
               : l->format == PLAN_NVFP4 ? "NVFP4LinearConverter"
                                         : "Float8LinearConverter");
  buf_cstr(o, "torchrun --nproc_per_node \"$GPUS_PER_NODE\" --nnodes \"$NODES\" --node_rank "
              "\"$NODE_RANK\" \\\n"
              "  --master_addr \"$MASTER\" --master_port 29500 -m torchtitan.train");
  titan_model(c->job.model, o);
  flag(o, "--parallelism.data_parallel_shard_degree", l->dp);
  flag(o, "--parallelism.tensor_parallel_degree", l->tp);
  flag(o, "--parallelism.context_parallel_degree", l->cp);
  if (l->ep > 1) flag(o, "--parallelism.expert_parallel_degree", l->ep);
  flag(o, "--training.local_batch_size", l->mbs);
  flag(o, "--training.global_batch_size", l->gbs);
  flag(o, "--training.seq_len", l->seq);
  if (c->steps > 0) flag(o, "--training.steps", c->steps);
  /* a subcommand of its own: behind all options */
  buf_printf(o, " \\\n  --compile.enable \"$@\" activation-checkpoint:%s\n",
             l->recompute == PLAN_ALL_TAGS ? "full"
             : l->recompute                ? "selective"
                                           : "none");
}

/* ---- MaxText ------------------------------------------------------------------------------------ */

/* Its names of models; what it has no name for is told by shape. */
static const char *const maxtext_names[][2] = {{"llama2-7b", "llama2-7b"},
                                               {"llama2-13b", "llama2-13b"},
                                               {"llama2-70b", "llama2-70b"},
                                               {"llama3-8b", "llama3-8b"},
                                               {"llama3-70b", "llama3-70b"},
                                               {"llama3.1-8b", "llama3.1-8b"},
                                               {"llama3.1-70b", "llama3.1-70b"},
                                               {"llama3.1-405b", "llama3.1-405b"},
                                               {"llama4-scout", "llama4-17b-16e"},
                                               {"llama4-maverick", "llama4-17b-128e"},
                                               {"mistral-7b", "mistral-7b"},
                                               {"mixtral-8x7b", "mixtral-8x7b"},
                                               {"mixtral-8x22b", "mixtral-8x22b"},
                                               {"gemma-2b", "gemma-2b"},
                                               {"gemma-7b", "gemma-7b"},
                                               {"gemma2-9b", "gemma2-9b"},
                                               {"gemma2-27b", "gemma2-27b"},
                                               {"gemma3-4b", "gemma3-4b"},
                                               {"gemma3-12b", "gemma3-12b"},
                                               {"gemma3-27b", "gemma3-27b"},
                                               {"gpt3-175b", "gpt3-175b"},
                                               {"deepseek-v2-lite", "deepseek2-16b"},
                                               {"deepseek-v3", "deepseek3-671b"},
                                               {"kimi-k2", "kimi-k2-1t"},
                                               {"gpt-oss-20b", "gpt-oss-20b"},
                                               {"gpt-oss-120b", "gpt-oss-120b"},
                                               {"qwen2.5-1.5b", "qwen2.5-1.5b"},
                                               {"qwen2.5-7b", "qwen2.5-7b"},
                                               {"qwen2.5-14b", "qwen2.5-14b"},
                                               {"qwen3-0.6b", "qwen3-0.6b"},
                                               {"qwen3-1.7b", "qwen3-1.7b"},
                                               {"qwen3-4b", "qwen3-4b"},
                                               {"qwen3-8b", "qwen3-8b"},
                                               {"qwen3-14b", "qwen3-14b"},
                                               {"qwen3-32b", "qwen3-32b"},
                                               {"qwen3-30b-a3b", "qwen3-30b-a3b"},
                                               {"qwen3-235b-a22b", "qwen3-235b-a22b"}};

static void key(Buf *o, const char *name, double v) { buf_printf(o, " \\\n  %s=%.15g", name, v); }

static void maxtext_shape(const PlanModel *m, Buf *o) {
  for (int i = 0; i < COUNT_OF(maxtext_names); i++)
    if (!strcasecmp(maxtext_names[i][0], m->name)) {
      buf_printf(o, " \\\n  model_name=%s", maxtext_names[i][1]);
      return;
    }
  key(o, "base_num_decoder_layers", m->layers);
  key(o, "base_emb_dim", m->hidden);
  key(o, "base_mlp_dim", m->ffn > 0 ? m->ffn : m->expert_ffn);
  key(o, "base_num_query_heads", m->heads);
  key(o, "base_num_kv_heads", m->kv_heads);
  key(o, "head_dim", m->head_dim);
  key(o, "vocab_size", m->vocab);
  if (m->experts > 0) key(o, "num_experts", m->experts), key(o, "num_experts_per_tok", m->active);
  if (!m->gated) buf_cstr(o, " \\\n  mlp_activations=\"['gelu']\"");
}

static const char *maxtext_policy(const PlanLayout *l) {
  return l->recompute == PLAN_ALL_TAGS      ? "full"
         : l->recompute & PLAN_TAG(PLAN_UP) ? "save_dot_except_mlp"
         : l->recompute                     ? "minimal_with_context"
                                            : "minimal_with_context";
}

static int common(int a, int b) { return b ? common(b, a % b) : a; }

/* The mesh: between slices lies of each axis what it has in common with the slices that are left. */
static void maxtext_mesh(const PlanChoice *c, Buf *o) {
  const PlanLayout *l = &c->job.layout;
  struct {
    const char *name;
    int size;
  } axes[] = {
      {"fsdp", l->dp / MAX(1, l->ep)}, {"expert", l->ep}, {"context", l->cp}, {"tensor", l->tp}};
  int slices = MAX(1, c->slice.slices);
  for (int i = 0; i < COUNT_OF(axes); i++) {
    int size = MAX(1, axes[i].size), far = common(size, slices);
    char name[64];
    slices /= far;
    if (i && size == 1) continue;
    snprintf(name, sizeof name, "ici_%s_parallelism", axes[i].name);
    key(o, name, size / far);
    snprintf(name, sizeof name, "dcn_%s_parallelism", axes[i].name);
    if (far > 1) key(o, name, far);
  }
}

static void maxtext(const PlanChoice *c, Buf *o) {
  const PlanLayout *l = &c->job.layout;
  buf_cstr(o, "python3 -m maxtext.trainers.pre_train.train src/maxtext/configs/base.yml \\\n  "
              "run_name=\"${RUN_NAME:-weft}\"");
  maxtext_shape(c->job.model, o);
  key(o, "per_device_batch_size", l->mbs / (l->tp * l->cp));
  double ga = l->gbs / (l->mbs * l->dp);
  if (ga > 1) key(o, "gradient_accumulation_steps", ga);
  key(o, "max_target_length", l->seq);
  maxtext_mesh(c, o);
  buf_printf(o, " \\\n  remat_policy=%s", maxtext_policy(l));
  word(o, "attention=flash dtype=bfloat16");
  if (l->format == PLAN_INT8) word(o, "quantization=int8");
  else if (l->format >= PLAN_FP8) /* fp8 is of GPUs */
    word(o, c->chip->kind == CHIP_TPU ? "quantization=fp8_full" : "quantization=fp8");
  if (c->steps > 0) key(o, "steps", c->steps);
  buf_cstr(o, " \"$@\"\n");
}

/* What no command that pretrains has: the program is the user's own, in this layout. */
static void own_program(const PlanChoice *c, const char *what, Buf *o) {
  const PlanLayout *l = &c->job.layout;
  char how[64];
  buf_printf(o,
             "# %s: the commands that pretrain have none, so this is that of your own program,\n"
             "# with %s, %g sequences of %g tokens a step, %g at once, recompute %s, %s.\n",
             what, plan_mesh(l, how, sizeof how), l->gbs, l->seq, l->mbs, plan_recompute_word(l),
             plan_format_name(l->format));
  buf_cstr(o, "exec \"${@:?the command that trains: train.sh python tune.py}\"\n");
}

void plan_flags(const PlanChoice *c, Buf *o) {
  if (c->job.lora_rank) {
    char what[64];
    snprintf(what, sizeof what, "Low-rank adapters of rank %d", c->job.lora_rank);
    return own_program(c, what, o);
  }
  if (c->job.model->bidirectional)
    return own_program(c, "A model that sees both ways, as BERT does", o);
  switch (c->job.software.stack) {
  case PLAN_MEGATRON: megatron(c, o); break;
  case PLAN_FSDP: torchtitan(c, o); break;
  case PLAN_XLA: maxtext(c, o); break;
  case PLAN_PROGRAM:
    buf_printf(o, "# The program's own command, with %g examples in a step over all of %d devices",
               c->job.layout.gbs, c->job.layout.devices);
    if (c->job.layout.mbs * c->job.layout.devices < c->job.layout.gbs)
      buf_printf(o, ", %g on a device at once", c->job.layout.mbs);
    buf_cstr(o, ".\nexec \"${@:?the command that trains: train.sh python train.py}\"\n");
    break;
  }
}
