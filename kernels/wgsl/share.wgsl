// share: the shared expert's MLP, spliced into moe_gated_shared.
//#splice quant 3
//#splice product 3
//#splice quant 4
//#splice product 4

fn share(row: u32, first: u32, thread: Thread) {
  if (first >= p.shared_count) { return; }
  let count = p.shared_count - first;
  let gate = product_3(row, 1u, p.first_3 + first, p.row_bytes_3, count, thread);
  workgroupBarrier();
  let up = product_4(row, 1u, p.first_4 + first, p.row_bytes_4, count, thread);
  if (thread.t >= COLUMNS || thread.t >= count) { return; }
  let inverse = inverse_of(0u, thread);
  shared_y[row * p.shared_count + first + thread.t] = 
    gated(p.kind, p.gate_limit, p.up_limit, gate * inverse, up * inverse);
}
