// unshared: what `share` is where no MLP stands beside the experts. It binds the same buffers.

fn share(row: u32, first: u32, thread: Thread) {
  _ = &w_3;
  _ = &w_4;
  _ = &shared_y;
}
