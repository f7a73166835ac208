/** A section that is folded until it is opened. */
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icons.tsx";

interface DisclosureProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children: ComponentChildren;
}

export const Disclosure = ({ icon, title, children }: DisclosureProps) => (
  <details class="folded">
    <summary>
      <Icon name={icon} size={16} />
      {title}
      <Icon name="down" size={14} />
    </summary>
    {children}
  </details>
);
