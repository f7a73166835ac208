/**
 * Removes tool calls from the answer of a turn without tools, which is not parsed for calls: each format's opening tag
 * and everything up to its closing tag or the end of the text.
 */

const CALLS: readonly RegExp[] = [
  /<((?:\w{1,20}:)?(?:tool_calls?|function_calls|TOOLCALL))>[^]*?(?:<\/\1>|$)/g,
  /<function=[^<>]{1,200}>[^]*?(?:<\/function>|$)/g,
  /<\|tool_call(\|?)>[^]*?(?:<(?:\|\/)?tool_call\|>|$)/g,
  /<\|tool_call_start\|>[^]*?(?:<\|tool_call_end\|>|$)/g,
  /<start_function_call>[^]*?(?:<end_function_call>|$)/g,
  /<\|START_ACTION\|>[^]*?(?:<\|END_ACTION\|>|$)/g,
  /<｜tool▁calls?▁begin｜>[^]*?(?:<｜tool▁calls▁end｜>|$)/g,
  /(?:\[TOOL_CALLS\]|<\|python_tag\|>|<\|channel\|>commentary)[^]*$/g,
];

/** The text without calls; trimmed if there were any. */
export function withoutCalls(text: string): string {
  const rest = CALLS.reduce((left, call) => left.replace(call, ""), text);
  return rest === text ? text : rest.trim();
}
