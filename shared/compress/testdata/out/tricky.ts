import { a } from "./a";

// a comment with { a brace
export const pattern = /[{]\/"/g;

export class Pool<T> extends Base {
  private items: T[] = [];

  take(n: number): T[] { /* [... 5 lines omitted: 10-14] */ }
}

export function total(xs: number[]): number { /* [... 5 lines omitted: 19-23] */ }
