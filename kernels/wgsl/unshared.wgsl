// unshared: replaces `share` without a shared expert. Binds the same buffers.

fn share(row: u32, first: u32, thread: Thread) {
  _ = &w_3;
  _ = &w_4;
  _ = &shared_y;
}
