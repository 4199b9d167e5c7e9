/* A TFLite external delegate for the tests: it takes nodes of a graph as an NPU's delegate does and
 * runs them with the runtime's own kernels, so results must not change. A custom node (what a
 * vendor's converter makes) is run as a copy of its inputs to its outputs, the last to the first.
 *
 * TEST_DELEGATE says what it does: "all" takes every node, "custom" the custom ones, "none" none;
 * "crash" and "hang" take every node and fault or sleep when invoked.
 *
 * The structs are the public C interface of TFLite delegates (tflite/core/c/common.h), shortened to
 * what is used here.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, CUSTOM = 32, DELEGATE = 51, DYNAMIC = 4, ALLOW_DYNAMIC_TENSORS = 1 };

typedef struct { int size; int data[]; } IntArray;

typedef struct {
  int type;
  union { char *raw; } data;
  IntArray *dims;
  struct { float scale; int32_t zero_point; } params;
  int allocation_type;
  size_t bytes;
  const void *allocation;
  const char *name;
  void *delegate;
  int buffer_handle;
  bool data_is_stale, is_variable;
  struct { int type; void *params; } quantization;
  void *sparsity;
  const IntArray *dims_signature;
} Tensor;

typedef struct {
  IntArray *inputs, *outputs, *intermediates, *temporaries;
  void *user_data, *builtin_data;
  const void *custom_initial_data;
  int custom_initial_data_size;
  void *delegate;
  bool might_have_side_effect;
} Node;

typedef struct Context Context;

typedef struct {
  void *(*init)(Context *, const char *, size_t);
  void (*free)(Context *, void *);
  int (*prepare)(Context *, Node *);
  int (*invoke)(Context *, Node *);
  const char *(*profiling_string)(const Context *, const Node *);
  int32_t builtin_code;
  const char *custom_name;
  int version;
  void *external, *async_kernel;
  uint64_t inplace;
} Registration;

typedef struct Delegate {
  void *data;
  int (*prepare)(Context *, struct Delegate *);
  void *copy_from, *copy_to, *free_handle;
  int64_t flags;
  void *opaque;
} Delegate;

struct Context {
  size_t tensors_size;
  int (*get_execution_plan)(Context *, IntArray **);
  Tensor *tensors;
  void *impl;
  void *resize_tensor, *report_error, *add_tensors;
  int (*get_node)(Context *, int, Node **, Registration **);
  int (*replace)(Context *, Registration, const IntArray *, Delegate *);
};

typedef struct {
  Delegate *delegate;
  IntArray *nodes, *inputs, *outputs;
} Params;

typedef struct {
  int count;
  IntArray *outputs;
  struct { Node node; Registration registration; } step[];
} Kernel;

static bool mode(const char *name) {
  const char *set = getenv("TEST_DELEGATE");
  return set != NULL && strcmp(set, name) == 0;
}

static void *kernel_init(Context *context, const char *buffer, size_t length) {
  const Params *params = (const Params *)buffer;
  Kernel *kernel = calloc(1, sizeof(Kernel) + params->nodes->size * sizeof(kernel->step[0]));
  kernel->count = params->nodes->size;
  kernel->outputs = params->outputs;
  for (int i = 0; i < kernel->count; i++) {
    Node *node;
    Registration *registration;
    context->get_node(context, params->nodes->data[i], &node, &registration);
    kernel->step[i].node = *node;
    kernel->step[i].registration = *registration;
  }
  return kernel;
}

static void kernel_free(Context *context, void *data) { free(data); }

static bool has(const IntArray *array, int value) {
  for (int i = 0; i < array->size; i++) {
    if (array->data[i] == value) return true;
  }
  return false;
}

static int kernel_prepare(Context *context, Node *self) {
  Kernel *kernel = self->user_data;
  for (int i = 0; i < kernel->count; i++) {
    Node *node = &kernel->step[i].node;
    Registration *registration = &kernel->step[i].registration;
    if (registration->builtin_code != CUSTOM && registration->prepare != NULL) {
      if (registration->prepare(context, node) != OK) return 1;
    }
    for (int j = 0; j < node->outputs->size; j++) {
      Tensor *tensor = &context->tensors[node->outputs->data[j]];
      if (!has(kernel->outputs, node->outputs->data[j]) && tensor->data.raw == NULL) {
        tensor->data.raw = calloc(1, tensor->bytes);
        tensor->allocation_type = DYNAMIC;
      }
    }
  }
  return OK;
}

static void copy(Context *context, const Node *node) {
  for (int i = 0; i < node->outputs->size; i++) {
    Tensor *from = &context->tensors[node->inputs->data[node->inputs->size - 1 - i]];
    Tensor *to = &context->tensors[node->outputs->data[i]];
    memcpy(to->data.raw, from->data.raw, to->bytes < from->bytes ? to->bytes : from->bytes);
  }
}

static int kernel_invoke(Context *context, Node *self) {
  Kernel *kernel = self->user_data;
  if (mode("crash")) raise(SIGSEGV);
  if (mode("hang")) sleep(600);
  for (int i = 0; i < kernel->count; i++) {
    if (kernel->step[i].registration.builtin_code == CUSTOM) {
      copy(context, &kernel->step[i].node);
    } else if (kernel->step[i].registration.invoke(context, &kernel->step[i].node) != OK) {
      return 1;
    }
  }
  return OK;
}

static int prepare(Context *context, Delegate *delegate) {
  IntArray *plan;
  if (context->get_execution_plan(context, &plan) != OK) return 1;
  IntArray *taken = calloc(1, sizeof(IntArray) + plan->size * sizeof(int));
  IntArray *order = calloc(1, sizeof(IntArray) + plan->size * sizeof(int));
  memcpy(order, plan, sizeof(IntArray) + plan->size * sizeof(int));
  for (int i = 0; i < order->size; i++) {
    Node *node;
    Registration *registration;
    context->get_node(context, order->data[i], &node, &registration);
    bool wanted = mode("custom") ? registration->builtin_code == CUSTOM : !mode("none");
    if (wanted) taken->data[taken->size++] = order->data[i];
  }
  Registration kernel = {
      .init = kernel_init,
      .free = kernel_free,
      .prepare = kernel_prepare,
      .invoke = kernel_invoke,
      .builtin_code = DELEGATE,
      .custom_name = "TestDelegate",
      .version = 1,
  };
  int status = taken->size > 0 ? context->replace(context, kernel, taken, delegate) : OK;
  free(taken);
  free(order);
  return status;
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                        void (*report)(const char *)) {
  Delegate *delegate = calloc(1, sizeof(Delegate));
  delegate->prepare = prepare;
  delegate->flags = ALLOW_DYNAMIC_TENSORS;
  return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) { free(delegate); }
