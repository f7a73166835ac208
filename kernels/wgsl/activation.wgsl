// activation: the activation between two matrices of an MLP, spliced into kernels. `kind` as in lower.ts.

/// The error function, |error| ≤ 1.5e-7 (Abramowitz and Stegun, 7.1.26); near 0 its series, for relative precision.
fn erf(x: f32) -> f32 {
  let a = abs(x);
  if (a < 0.3) {
    let s = x * x;
    return 1.1283791671 * x * (1.0 - s * (0.33333333333 - s * (0.1 - s * (0.0238095238 - s * 0.00462962963))));
  }
  let t = 1.0 / (1.0 + 0.3275911 * a);
  let poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return sign(x) * (1.0 - poly * exp(-a * a));
}

fn activate(kind: u32, x: f32) -> f32 {
  switch kind {
    case 0u: { return x / (1.0 + exp(-max(x, -80.0))); } // silu
    case 1u: { // gelu
      let inner = 0.7978845608 * x * (1.0 + 0.044715 * x * x);
      return 0.5 * x * (1.0 + tanh(clamp(inner, -15.0, 15.0)));
    }
    case 2u: { return 0.5 * x * (1.0 + erf(x * 0.7071067812)); } // gelu_erf
    case 3u: { return max(0.0, x); } // relu
    case 4u: { return max(0.0, x) * max(0.0, x); } // relu_sqr
    case 5u: { return 1.0 / (1.0 + exp(-max(x, -80.0))); } // sigmoid
    case 6u: { return tanh(clamp(x, -15.0, 15.0)); } // tanh
    case 7u: { return select(log(1.0 + exp(min(x, 20.0))), x, x > 20.0); } // softplus
    case 10u: { return select(exp(max(x, -80.0)) - 1.0, x, x > 0.0); } // elu
    default: { return x; } // none
  }
}

/// x within −cap … cap; a cap of 0 means no limit.
fn soft_cap(x: f32, cap: f32) -> f32 {
  if (cap == 0.0) { return x; }
  return cap * tanh(clamp(x / cap, -15.0, 15.0));
}

/// The input of down, from gate and up. A limit of 0 means no limit.
fn gated(kind: u32, gate_limit: f32, up_limit: f32, gate: f32, up: f32) -> f32 {
  if (kind == 9u) { // swiglu_oai
    let g = min(gate, 7.0);
    return g / (1.0 + exp(-max(1.702 * g, -80.0))) * (clamp(up, -7.0, 7.0) + 1.0);
  }
  if (kind == 11u) { // SiLU with soft limits
    return soft_cap(gate, gate_limit) / (1.0 + exp(-max(gate, -80.0))) * soft_cap(up, up_limit);
  }
  if (gate_limit == 0.0) { return activate(kind, gate) * up; }
  return min(activate(kind, gate), gate_limit) * clamp(up, -up_limit, up_limit);
}
