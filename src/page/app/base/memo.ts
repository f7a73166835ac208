/** A component that is rendered again only if a property changes. */
import { Component, h, type FunctionComponent } from "preact";

export function memo<P extends object>(draw: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const names = new Set([...Object.keys(next), ...Object.keys(this.props)]) as Set<keyof P>;
      return [...names].some((name) => name !== "children" && next[name] !== this.props[name]);
    }

    override render() {
      return h(draw, this.props as P);
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
