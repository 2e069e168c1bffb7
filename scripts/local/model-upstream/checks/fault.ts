/** Why a request is refused, in the vendor's words; `param` and `code` are OpenAI's. */
export interface Fault {
  message: string
  param?: string | null
  code?: string | null
}

export interface CheckedRequest {
  /** The first reason to refuse it. */
  fault: Fault | undefined
  /** Members that the vendor does not document, as paths such as `messages[0].x`. */
  unknownMembers: string[]
}

/** The first result of `find` that is not undefined. */
export function firstFault<Item>(
  items: Iterable<Item>,
  find: (item: Item, index: number) => Fault | undefined,
): Fault | undefined {
  let index = 0
  for (const item of items) {
    const fault = find(item, index)
    if (fault !== undefined) return fault
    index += 1
  }
  return undefined
}
