import { a } from "./a";

// a comment with { a brace
export const pattern = /[{]\/"/g;

export class Pool<T> extends Base {
  private items: T[] = [];

  take(n: number): T[] {
    const s = `n is ${n > 1 ? `{${n}}` : "}"}`;
    if (n < 0) {
      throw new Error(s);
    }
    return this.items.splice(0, n);
  }
}

export function total(xs: number[]): number {
  let t = 0;
  for (const x of xs) {
    t += x / 2;
  }
  return t;
}
