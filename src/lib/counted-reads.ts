/** A work that reads more than it may. */
class TooManyReadsError extends Error {
  constructor() {
    super('too many reads')
    this.name = 'TooManyReadsError'
  }
}

/** Reads that may still be made of several values together. */
export interface ReadBudget {
  left: number
}

/**
 * Wraps a JSON value so that every read of it counts: for a library that walks the value and whose steps cannot be bounded
 * otherwise. A member counts as one read, and the names of an object as many as there are.
 * @throws TooManyReadsError from the read that is beyond the budget.
 */
export function countedReads<Value>(value: Value, budget: ReadBudget): Value {
  // Each object has one view, since readers compare objects.
  const views = new WeakMap<object, object>()
  const spend = (reads: number) => {
    budget.left -= reads
    if (budget.left < 0) throw new TooManyReadsError()
  }
  const viewOf = (target: unknown): unknown => {
    if (typeof target !== 'object' || target === null) return target
    const known = views.get(target)
    if (known) return known
    const view = new Proxy(target, {
      get(of, name) {
        spend(1)
        return viewOf(Reflect.get(of, name))
      },
      has(of, name) {
        spend(1)
        return Reflect.has(of, name)
      },
      ownKeys(of) {
        const names = Reflect.ownKeys(of)
        spend(names.length)
        return names
      },
    })
    views.set(target, view)
    return view
  }
  return viewOf(value) as Value
}
