/* The texts of loaders.h. */
#include "infer/loaders.h"

const char *const loader_jax =
    "\"\"\"The network of forward.mlirbc in JAX: f(batch) -> logits, on any backend; a batch has "
    "the shape\n"
    "and type of export.json, bytes as they are in files.\"\"\"\n"
    "import json\n"
    "import pathlib\n"
    "import numpy as np\n"
    "import jax\n"
    "from jax import export, tree_util\n"
    "\n"
    "\n"
    "def load(folder=pathlib.Path(__file__).parent):\n"
    "    about = json.loads((folder / 'export.json').read_text())\n"
    "    kinds = {'ui8': np.uint8, 'i32': np.int32, 'f32': np.float32}\n"
    "    given = tuple(jax.core.ShapedArray(tuple(x['shape']), np.dtype(kinds[x['type']])) for x "
    "in "
    "about.get('inputs', [about['input']]))\n"
    "    out = tuple(about['output']['shape'])\n"
    "    in_tree = tree_util.tree_structure((tuple(range(len(given))), {}))\n"
    "    program = export.Exported(\n"
    "        fun_name='forward', in_tree=in_tree, in_avals=given, "
    "out_tree=tree_util.tree_structure(0),\n"
    "        out_avals=(jax.core.ShapedArray(out, np.dtype('float32')),), "
    "in_shardings_hlo=(None,) * len(given),\n"
    "        out_shardings_hlo=(None,), _has_named_shardings=False, _in_named_shardings=(None,) * "
    "len(given),\n"
    "        _out_named_shardings=(None,), nr_devices=1, platforms=(jax.default_backend(),), "
    "ordered_effects=(),\n"
    "        unordered_effects=(), disabled_safety_checks=(), mlir_module_serialized=(folder / "
    "'forward.mlirbc').read_bytes(),\n"
    "        calling_convention_version=export.maximum_supported_calling_convention_version,\n"
    "        module_kept_var_idx=tuple(range(len(given))), uses_global_constants=False, "
    "_get_vjp=None)\n"
    "    return jax.jit(program.call)\n";

const char *const loader_state =
    "\"\"\"The state of the step in JAX or numpy: load() -> {'params': {'dense': {'kernel': "
    "...}}}.\"\"\"\n"
    "import pathlib\n"
    "from safetensors.numpy import load_file\n"
    "\n"
    "\n"
    "def load(path=pathlib.Path(__file__).parent / 'state.safetensors'):\n"
    "    tree = {}\n"
    "    for name, value in load_file(path).items():\n"
    "        *folders, leaf = name.split('/')\n"
    "        at = tree\n"
    "        for f in folders:\n"
    "            at = at.setdefault(f, {})\n"
    "        at[leaf] = value\n"
    "    return tree\n";

/* Fills a network, and misses nothing but what is named. */
#define FILL                                                                           \
  "def fill(net, absent=()):\n"                                                        \
  "    \"\"\"All weights into their places; only names that end in `absent` may lack " \
  "theirs.\"\"\"\n"                                                                    \
  "    missing, unknown = net.load_state_dict(weights, strict=False)\n"                \
  "    missing = [name for name in missing if not name.endswith(absent)]\n"            \
  "    if missing or unknown:\n"                                                       \
  "        raise KeyError(f'without weights: {missing}; weights without a place: {unknown}')\n"

#define TORCH_HEAD                                                                             \
  "\"\"\"The network in PyTorch with the weights of pytorch.safetensors. Pictures are bytes\n" \
  "(batch, height, width, channels).\"\"\"\n"                                                  \
  "import json\n"                                                                              \
  "import pathlib\n"                                                                           \
  "import torch\n"                                                                             \
  "from safetensors.torch import load_file\n"                                                  \
  "from torch import nn\n"                                                                     \
  "\n"                                                                                         \
  "folder = pathlib.Path(__file__).parent\n"                                                   \
  "about = json.loads((folder / 'export.json').read_text())\n"                                 \
  "weights = load_file(folder / 'pytorch.safetensors')\n"                                      \
  "\n"                                                                                         \
  "\n"                                                                                         \
  "def pixels(x):\n"                                                                           \
  "    c = x.shape[-1]\n"                                                                      \
  "    return ((x / 255 - torch.tensor(about['mean'][:c])) / "                                 \
  "torch.tensor(about['std'][:c])).permute(0, 3, 1, 2)\n"                                      \
  "\n"                                                                                         \
  "\n"
#define TORCH_TAIL                     \
  "\n"                                 \
  "\n"                                 \
  "def load():\n"                      \
  "    net = Net()\n"                  \
  "    net.load_state_dict(weights)\n" \
  "    return net.eval()\n"

static const char torch_mnist[] =
    TORCH_HEAD "class Net(nn.Module):\n"
               "    def __init__(self):\n"
               "        super().__init__()\n"
               "        size = {k: v.shape for k, v in weights.items()}\n"
               "        self.conv1 = nn.Conv2d(size['conv1.weight'][1], 32, 3)\n"
               "        self.conv2 = nn.Conv2d(32, 64, 3)\n"
               "        self.dense1 = nn.Linear(size['dense1.weight'][1], 128)\n"
               "        self.dense2 = nn.Linear(128, size['dense2.weight'][0])\n"
               "\n"
               "    def forward(self, x):\n"
               "        x = self.conv2(self.conv1(pixels(x)).relu()).relu()\n"
               "        x = nn.functional.max_pool2d(x, 2).permute(0, 2, 3, 1).flatten(1)  # "
               "channels last, as weft flattens\n"
               "        return self.dense2(self.dense1(x).relu())\n" TORCH_TAIL;

static const char torch_mlp[] = TORCH_HEAD
    "class Net(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        for name in ('dense1', 'dense2', 'dense3'):\n"
    "            out, into = weights[name + '.weight'].shape\n"
    "            setattr(self, name, nn.Linear(into, out))\n"
    "\n"
    "    def forward(self, x):\n"
    "        x = pixels(x).permute(0, 2, 3, 1).flatten(1)  # channels last, as weft flattens\n"
    "        return self.dense3(self.dense2(self.dense1(x).relu()).relu())\n" TORCH_TAIL;

static const char torch_davidnet[] = TORCH_HEAD FILL
    "\n\n"
    "def unit(into, out):\n"
    "    m = nn.Module()\n"
    "    m.conv, m.bn = nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)\n"
    "    m.forward = lambda x: m.bn(m.conv(x)).relu()\n"
    "    return m\n"
    "\n"
    "\n"
    "class Net(nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.prep, self.layer1, self.layer2, self.layer3 = unit(3, 64), unit(64, 128), "
    "unit(128, 256), unit(256, 512)\n"
    "        for layer, width in ((self.layer1, 128), (self.layer3, 512)):\n"
    "            layer.res1, layer.res2 = unit(width, width), unit(width, width)\n"
    "        self.classifier = nn.Linear(512, about['classes'], bias=False)\n"
    "\n"
    "    def forward(self, x):\n"
    "        x = self.prep(pixels(x))\n"
    "        for layer in (self.layer1, self.layer2, self.layer3):\n"
    "            x = nn.functional.max_pool2d(layer(x), 2)\n"
    "            x = x + layer.res2(layer.res1(x)) if hasattr(layer, 'res1') else x\n"
    "        return 0.125 * self.classifier(x.amax((2, 3)))\n"
    "\n"
    "\n"
    "def load():\n"
    "    net = Net()\n"
    "    fill(net, ('num_batches_tracked',))  # PyTorch counts batches, weft does not\n"
    "    return net.eval()\n";

static const char torch_resnet[] = TORCH_HEAD
    "import torchvision\n\n\n" FILL "\n\n"
    "def load():\n"
    "    net = getattr(torchvision.models, about['model'])(num_classes=about['classes'])\n"
    "    fill(net, ('num_batches_tracked',))  # PyTorch counts batches, weft does not\n"
    "    net.eval()\n"
    "    return lambda x: net(pixels(x))\n";

#define TRANSFORMERS(config, model)                                                               \
  "\"\"\"The network in transformers with the weights of pytorch.safetensors: tokens -> "         \
  "logits.\"\"\"\n"                                                                               \
  "import json\n"                                                                                 \
  "import pathlib\n"                                                                              \
  "import transformers\n"                                                                         \
  "from safetensors.torch import load_file\n"                                                     \
  "\n"                                                                                            \
  "folder = pathlib.Path(__file__).parent\n"                                                      \
  "about = json.loads((folder / 'export.json').read_text())\n"                                    \
  "weights = load_file(folder / 'pytorch.safetensors')\n"                                         \
  "size = {k: tuple(v.shape) for k, v in weights.items()}\n"                                      \
  "layers = 1 + max(int(p) for k in weights for p in k.split('.') if p.isdigit())\n"              \
  "\n"                                                                                            \
  "\n" FILL "\n"                                                                                  \
  "\n"                                                                                            \
  "def load():\n"                                                                                 \
  "    config = transformers." config "\n"                                                        \
  "    net = transformers." model "(config)\n"                                                    \
  "    fill(net, ('lm_head.weight', 'predictions.decoder.weight', 'predictions.decoder.bias'))  " \
  "# tied: there once\n"                                                                          \
  "    net.eval()\n"                                                                              \
  "    return lambda ids: net(ids).logits\n"

static const char torch_gpt2[] =
    TRANSFORMERS("GPT2Config(vocab_size=about['classes'], n_layer=layers, "
                 "n_positions=size['transformer.wpe.weight'][0],\n"
                 "        n_embd=size['transformer.wpe.weight'][1], "
                 "n_head=size['transformer.wpe.weight'][1] // 64,\n"
                 "        **({} if about['classes'] == 50257 else "
                 "dict(bos_token_id=None, eos_token_id=None)))",
                 "GPT2LMHeadModel");
static const char torch_bert[] = TRANSFORMERS(
    "BertConfig(vocab_size=about['classes'], num_hidden_layers=layers,\n"
    "        hidden_size=size['bert.embeddings.position_embeddings.weight'][1],\n"
    "        max_position_embeddings=size['bert.embeddings.position_embeddings.weight'][0],\n"
    "        num_attention_heads=size['bert.embeddings.position_embeddings.weight'][1] // 64,\n"
    "        intermediate_size=4 * size['bert.embeddings.position_embeddings.weight'][1])",
    "BertForMaskedLM");

#define KERAS_HEAD                                                                                \
  "\"\"\"The network in Keras with the weights of keras.safetensors. Pictures are bytes (batch, " \
  "height,\n"                                                                                     \
  "width, channels).\"\"\"\n"                                                                     \
  "import json\n"                                                                                 \
  "import pathlib\n"                                                                              \
  "import keras\n"                                                                                \
  "import numpy as np\n"                                                                          \
  "from safetensors.numpy import load_file\n"                                                     \
  "\n"                                                                                            \
  "folder = pathlib.Path(__file__).parent\n"                                                      \
  "about = json.loads((folder / 'export.json').read_text())\n"                                    \
  "weights = load_file(folder / 'keras.safetensors')\n"                                           \
  "shape = about['input']['shape'][1:]\n"                                                         \
  "\n"                                                                                            \
  "\n"                                                                                            \
  "def load():\n"                                                                                 \
  "    mean, var = np.array(about['mean'][:shape[-1]]) * 255, "                                   \
  "(np.array(about['std'][:shape[-1]]) * 255) ** 2\n"                                             \
  "    net = keras.Sequential([keras.Input(shape), keras.layers.Normalization(mean=mean, "        \
  "variance=var),\n"
#define KERAS_TAIL                                                                        \
  "    for layer in net.layers:\n"                                                        \
  "        if layer.name + '/kernel' in weights:\n"                                       \
  "            layer.set_weights([weights[layer.name + '/kernel'], weights[layer.name + " \
  "'/bias']])\n"                                                                          \
  "    return net\n"

static const char keras_mnist[] =
    KERAS_HEAD "        keras.layers.Conv2D(32, 3, activation='relu', name='conv1'),\n"
               "        keras.layers.Conv2D(64, 3, activation='relu', name='conv2'),\n"
               "        keras.layers.MaxPooling2D(2), keras.layers.Flatten(),\n"
               "        keras.layers.Dense(128, activation='relu', name='dense1'),\n"
               "        keras.layers.Dense(about['classes'], name='dense2')])\n" KERAS_TAIL;
static const char keras_mlp[] = KERAS_HEAD
    "        keras.layers.Flatten(),\n"
    "        keras.layers.Dense(weights['dense1/bias'].size, activation='relu', name='dense1'),\n"
    "        keras.layers.Dense(weights['dense2/bias'].size, activation='relu', name='dense2'),\n"
    "        keras.layers.Dense(about['classes'], name='dense3')])\n" KERAS_TAIL;

static const struct {
  const char *family, *torch, *keras; /* the model's name begins so */
} loaders[] = {{"mnist", torch_mnist, keras_mnist}, {"mlp", torch_mlp, keras_mlp},
               {"davidnet", torch_davidnet, NULL},  {"resnet", torch_resnet, NULL},
               {"gpt2", torch_gpt2, NULL},          {"bert", torch_bert, NULL}};

const char *loader_pytorch(const Model *m) {
  for (int i = 0; i < COUNT_OF(loaders); i++)
    if (str_starts(str_from(m->name), loaders[i].family)) return loaders[i].torch;
  return NULL;
}

const char *loader_keras(const Model *m) {
  for (int i = 0; i < COUNT_OF(loaders); i++)
    if (str_starts(str_from(m->name), loaders[i].family)) return loaders[i].keras;
  return NULL;
}
