// layout: what TypeScript and C tell each other. Made from layout.ts by build.sh; do not edit.
#pragma once
#include "vec.h"

enum { ROWS_ALL = 0, ROWS_WANTED = 1 };
enum { ACT_SILU = 0, ACT_GELU = 1, ACT_GELU_ERF = 2, ACT_RELU = 3, ACT_RELU_SQR = 4, ACT_SIGMOID = 5, ACT_TANH = 6, ACT_SWIGLU_OAI = 7 };
enum { SCORE_SOFTMAX = 0, SCORE_SIGMOID = 1, SCORE_SOFTMAX_CHOSEN = 2 };
enum { KV_F32 = 0, KV_F16 = 1 };
enum { OP_EMBED = 1, OP_INPUT = 2, OP_RMS_NORM = 3, OP_LAYER_NORM = 4, OP_PACK = 5, OP_LINEAR = 6, OP_ROPE = 7, OP_STORE = 8, OP_ATTEND = 9, OP_ROUTE = 10, OP_WEIGH = 11, OP_GROUP = 12, OP_COMBINE = 13, OP_MULTIPLY = 14, OP_CLAMP = 15, OP_SLICE = 16, OP_JOIN = 17, OP_HEAD_LINEAR = 18, OP_CAUSAL_CONV = 19, OP_DELTA_RULE = 20, OP_SELECTIVE_SCAN = 21, OP_GATE = 22, OP_ADD = 23, OP_ADD_VECTOR = 24, OP_ADD_POSITION = 25, OP_POSITION_SCALE = 26, OP_SOFT_CAP = 27, OP_SCALE = 28, OP_TAKE = 29, OP_SHIFT = 30 };
#define RESULT 1
#define RECORD_BYTES 320

typedef struct { u64 data; u64 scales; u64 bias; u64 out; i64 rowBytes; i64 expertBytes; i32 rows; i32 type; i32 outDim; i32 pad; u64 grid; } Matrix;
_Static_assert(sizeof(Matrix) == 72, "Matrix");
typedef struct { i32 kind; i32 rowSet; i32 perRow; i32 joined; u64 next; u64 done; } Head;
_Static_assert(sizeof(Head) == 32, "Head");
typedef struct { u32 stamp; i32 threads; u64 ops; i32 opCount; i32 spin; i32 wake; i32 sleepers; u64 waitOn; u64 wakeAll; u64 scratch; i64 scratchBytes; i32 rows; i32 decodeRows; i32 wanted; i32 wantedDecode; i32 blockCount; i32 slot; i32 keep; i32 discard; i32 length; u64 tokens; u64 slots; u64 positions; u64 places; u64 input; u64 wantedRows; u64 blocks; u64 result; } Pass;
_Static_assert(sizeof(Pass) == 168, "Pass");
typedef struct { Head head; Matrix table; u64 out; i32 dim; i32 vocab; f32 scale; } Embed;
_Static_assert(sizeof(Embed) == 128, "Embed");
typedef struct { Head head; u64 out; i32 dim; } Input;
_Static_assert(sizeof(Input) == 48, "Input");
typedef struct { Head head; u64 x; u64 out; u64 weight; u64 packed; i32 n; i32 runs; i32 weightRows; f32 eps; i32 sum; } RmsNorm;
_Static_assert(sizeof(RmsNorm) == 88, "RmsNorm");
typedef struct { Head head; u64 x; u64 out; u64 weight; u64 packed; i32 n; i32 runs; i32 weightRows; f32 eps; u64 bias; } LayerNorm;
_Static_assert(sizeof(LayerNorm) == 88, "LayerNorm");
typedef struct { Head head; u64 x; u64 packed; i32 n; } Pack;
_Static_assert(sizeof(Pack) == 56, "Pack");
typedef struct { Head head; u64 x; u64 packed; u64 groups; i32 n; i32 count; i32 accumulate; i32 floats; i32 inputPerRow; Matrix matrices[3]; } Linear;
_Static_assert(sizeof(Linear) == 296, "Linear");
typedef struct { Head head; u64 x; u64 cos; u64 sin; i32 dim; i32 heads; i32 headDim; i32 rotaryDim; i32 neox; } Rope;
_Static_assert(sizeof(Rope) == 80, "Rope");
typedef struct { Head head; u64 k; u64 v; u64 keys; u64 values; i32 heads; i32 headDim; i32 valueDim; i32 valueStride; i32 ctxLen; i32 kept; i32 type; } Store;
_Static_assert(sizeof(Store) == 96, "Store");
typedef struct { Head head; u64 q; u64 out; u64 keys; u64 values; i32 heads; i32 kvHeads; i32 headDim; i32 ctxLen; i32 kept; i32 valueDim; i32 window; i32 chunked; f32 scale; f32 softCap; i32 type; u64 sinks; u64 slopes; } Attend;
_Static_assert(sizeof(Attend) == 128, "Attend");
typedef struct { Head head; u64 logits; u64 bias; u64 chosen; u64 shares; i32 experts; i32 used; i32 score; i32 groups; i32 groupsUsed; i32 normalize; f32 scale; } Route;
_Static_assert(sizeof(Route) == 96, "Route");
typedef struct { Head head; u64 x; u64 shares; u64 out; i32 n; i32 used; } Weigh;
_Static_assert(sizeof(Weigh) == 64, "Weigh");
typedef struct { Head head; u64 chosen; u64 groups; i32 experts; i32 used; } Group;
_Static_assert(sizeof(Group) == 56, "Group");
typedef struct { Head head; u64 x; u64 shares; u64 out; i32 dim; i32 used; } Combine;
_Static_assert(sizeof(Combine) == 64, "Combine");
typedef struct { Head head; u64 a; u64 b; u64 out; i32 n; i32 narrow; i32 act; } Multiply;
_Static_assert(sizeof(Multiply) == 72, "Multiply");
typedef struct { Head head; u64 x; i32 n; f32 limit; } Clamp;
_Static_assert(sizeof(Clamp) == 48, "Clamp");
typedef struct { Head head; u64 x; u64 out; i32 heads; i32 from; i32 to; i32 at; } Slice;
_Static_assert(sizeof(Slice) == 64, "Slice");
typedef struct { Head head; u64 a; u64 b; u64 out; i32 heads; i32 first; i32 second; } Join;
_Static_assert(sizeof(Join) == 72, "Join");
typedef struct { Head head; u64 x; u64 out; Matrix matrix; i32 n; i32 heads; i32 transposed; } HeadLinear;
_Static_assert(sizeof(HeadLinear) == 136, "HeadLinear");
typedef struct { Head head; u64 x; u64 out; u64 state; u64 weight; u64 bias; i32 n; i32 taps; i32 act; } CausalConv;
_Static_assert(sizeof(CausalConv) == 88, "CausalConv");
typedef struct { Head head; u64 q; u64 k; u64 v; u64 alpha; u64 beta; u64 a; u64 dt; u64 out; u64 state; i32 heads; i32 keyHeads; i32 headDim; i32 alphas; i32 repeat; f32 scale; } DeltaRule;
_Static_assert(sizeof(DeltaRule) == 128, "DeltaRule");
typedef struct { Head head; u64 x; u64 dt; u64 dtBias; u64 b; u64 c; u64 a; u64 d; u64 out; u64 state; i32 heads; i32 headDim; i32 stateDim; i32 groups; i32 decays; } SelectiveScan;
_Static_assert(sizeof(SelectiveScan) == 128, "SelectiveScan");
typedef struct { Head head; u64 gate; u64 up; u64 out; u64 packed; i32 n; i32 act; } Gate;
_Static_assert(sizeof(Gate) == 72, "Gate");
typedef struct { Head head; u64 a; u64 b; u64 out; i32 n; f32 scale; } Add;
_Static_assert(sizeof(Add) == 64, "Add");
typedef struct { Head head; u64 x; u64 vector; i32 n; } AddVector;
_Static_assert(sizeof(AddVector) == 56, "AddVector");
typedef struct { Head head; u64 x; Matrix table; i32 n; } AddPosition;
_Static_assert(sizeof(AddPosition) == 120, "AddPosition");
typedef struct { Head head; u64 x; i32 n; f32 coef; f32 floorScale; f32 offset; } PositionScale;
_Static_assert(sizeof(PositionScale) == 56, "PositionScale");
typedef struct { Head head; u64 x; i32 n; f32 cap; } SoftCap;
_Static_assert(sizeof(SoftCap) == 48, "SoftCap");
typedef struct { Head head; u64 x; i32 n; f32 by; } Scale;
_Static_assert(sizeof(Scale) == 48, "Scale");
typedef struct { Head head; u64 x; u64 out; i32 n; } Take;
_Static_assert(sizeof(Take) == 56, "Take");
typedef struct { Head head; u64 keys; u64 values; u64 cos; u64 sin; i32 heads; i32 headDim; i32 ctxLen; i32 rotaryDim; i32 neox; i32 type; i32 valueDim; } Shift;
_Static_assert(sizeof(Shift) == 96, "Shift");
