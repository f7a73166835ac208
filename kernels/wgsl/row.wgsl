// row: attention of up to four heads of one row over a span of its positions, spliced into attention,
// attention_chosen and attention_entries.

fn extra(i: u32) -> f32 {
  return extras[i];
}

fn load_query(quad: Quad, t: u32) {
  for (var i = t; i < quad.key_columns * 4u; i += WG) {
    var four = vec4<f32>();
    for (var h = 0u; h < quad.count && i < p.head_dim; h++) {
      four[h] = q[(quad.row * p.heads + quad.first + h) * p.head_dim + i] * p.scale;
    }
    query[(i % 4u) * KEY_FOURS + i / 4u] = four;
  }
}

/// Attention of a workgroup's heads.
fn attend_row(group: vec3<u32>, span: Span, t: u32) {
  let row = batch[1u + 3u * group.y]; // token, slot, cell
  if (span.start >= span.end) { return; }
  let quad = quad_of(group, row.z);
  load_query(quad, t);
  workgroupBarrier();
  rotate_query(quad, t);
  var found = found_none(quad, group.z, t);
  attend(&found, row.y, span.start, span.end, quad, t);
  gather(found, t);
  rotate_back(quad, t);
  store(quad, group.z, span.whole, found.most, t);
}
