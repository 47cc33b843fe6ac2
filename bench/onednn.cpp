// oneDNN's convolutions for onednn.py: images channels last in memory as JAX has them, weights in the form oneDNN likes best, before the
// clock starts.
#include <oneapi/dnnl/dnnl.hpp>

#include <cstdio>
#include <unordered_map>
#include <vector>

using namespace dnnl;
using type = memory::data_type;
using tag = memory::format_tag;

struct Step {
  primitive primitive_of;
  std::unordered_map<int, memory> arguments;
};

static engine *cpu;
static stream *queue;
static std::vector<std::vector<Step>> all;

static memory filled(const memory::desc &d) {
  memory m(d, *cpu);
  if (d.get_data_type() != type::f32) return m;
  float *p = static_cast<float *>(m.get_data_handle());
  for (size_t i = 0; i < d.get_size() / 4; i++) p[i] = (float)(i * 2654435761u >> 8 & 1023) / 1024 - 0.5f;
  return m;
}

// A convolution with the padding "SAME"; grad: with both gradients. Returns its number.
extern "C" int make(int images, int side, int in, int out, int window, int step, int depthwise, int grad, int bf16) {
  if (!cpu) cpu = new engine(engine::kind::cpu, 0), queue = new stream(*cpu);
  int places = (side + step - 1) / step, padded = (places - 1) * step + window - side;
  if (padded < 0) padded = 0;
  memory::dims low = {padded / 2, padded / 2}, high = {padded - padded / 2, padded - padded / 2}, steps = {step, step};
  memory::dims of_w = depthwise ? memory::dims{in, 1, 1, window, window} : memory::dims{out, in, window, window};
  type t = bf16 ? type::bf16 : type::f32;
  memory::desc x({images, in, side, side}, t, tag::nhwc), y({images, out, places, places}, t, tag::nhwc), w(of_w, t, tag::any);
  auto direct = algorithm::convolution_direct;
  convolution_forward::primitive_desc f(*cpu, prop_kind::forward_training, direct, x, w, y, steps, low, high);
  memory mx = filled(x), mw = filled(f.weights_desc()), my = filled(y);
  std::vector<Step> s = {{convolution_forward(f), {{DNNL_ARG_SRC, mx}, {DNNL_ARG_WEIGHTS, mw}, {DNNL_ARG_DST, my}}}};
  if (grad) {
    convolution_backward_data::primitive_desc b(*cpu, direct, x, w, y, steps, low, high, f);
    convolution_backward_weights::primitive_desc g(*cpu, direct, x, w, y, steps, low, high, f);
    s.push_back({convolution_backward_data(b),
                 {{DNNL_ARG_DIFF_SRC, filled(x)}, {DNNL_ARG_WEIGHTS, filled(b.weights_desc())}, {DNNL_ARG_DIFF_DST, my}}});
    s.push_back({convolution_backward_weights(g),
                 {{DNNL_ARG_SRC, mx}, {DNNL_ARG_DIFF_WEIGHTS, filled(g.diff_weights_desc())}, {DNNL_ARG_DIFF_DST, my}}});
  }
  all.push_back(s);
  return (int)all.size() - 1;
}

extern "C" void run(int i) {
  for (auto &s : all[i]) s.primitive_of.execute(*queue, s.arguments);
  queue->wait();
}

extern "C" void version(int *v) {
  const version_t *have = dnnl::version();
  v[0] = have->major, v[1] = have->minor, v[2] = have->patch;
}
