/**
 * The cache of weight units in memory, each in a slot. A new unit replaces the least used one; older uses count less.
 */
import { assert } from "../../../../base/index.ts";

/** Passes after which a use counts half. */
const HALF_LIFE = 128;
const GROWTH = 2 ** (1 / HALF_LIFE);
/** Weights of uses are scaled down before they exceed the range of floats. */
const WEIGHT_MAX = 1e100;
const NONE = -1;

export class SlotCache {
  readonly slots: number;
  readonly #slotOf: Int32Array; // by unit
  readonly #unitIn: Int32Array; // by slot
  readonly #held: Uint8Array; // by slot
  readonly #uses: Float64Array; // by unit
  /** Weight of a use in this pass: it grows, instead of all earlier uses losing weight. */
  #weight = 1;
  #filled = 0;

  constructor(units: number, slots: number) {
    this.slots = slots;
    this.#slotOf = new Int32Array(units).fill(NONE);
    this.#unitIn = new Int32Array(slots).fill(NONE);
    this.#held = new Uint8Array(slots);
    this.#uses = new Float64Array(units);
  }

  /** Undefined: the unit is not in memory. */
  slotOf(unit: number): number | undefined {
    const slot = this.#slotOf[unit]!;
    return slot === NONE ? undefined : slot;
  }

  /** A new pass begins. */
  age(): void {
    this.#weight *= GROWTH;
    if (this.#weight < WEIGHT_MAX) return;
    for (let unit = 0; unit < this.#uses.length; unit++) this.#uses[unit]! /= this.#weight;
    this.#weight = 1;
  }

  /** Counts uses of a unit. */
  use(unit: number, count: number): void {
    this.#uses[unit]! += this.#weight * count;
  }

  /** Assigns a slot to a unit that has none. A held slot is not reused. */
  take(unit: number): number {
    const isNew = this.#filled < this.slots;
    const slot = isNew ? this.#filled++ : this.#leastUsed();
    if (!isNew) this.#slotOf[this.#unitIn[slot]!] = NONE;
    this.#unitIn[slot] = unit;
    this.#slotOf[unit] = slot;
    return slot;
  }

  hold(slot: number): void {
    this.#held[slot]!++;
  }

  release(slot: number): void {
    this.#held[slot]!--;
  }

  #leastUsed(): number {
    let least = NONE;
    let uses = Infinity;
    for (let slot = 0; slot < this.slots; slot++) {
      if (this.#held[slot]! > 0) continue;
      const own = this.#uses[this.#unitIn[slot]!]!;
      if (own < uses) [least, uses] = [slot, own];
    }
    assert(least !== NONE, "every slot of weights is in use");
    return least;
  }
}
