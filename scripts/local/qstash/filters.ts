/** What the filters of logs, messages and the DLQ look at. */
export interface Filterable {
  readonly messageId: string
  readonly url: string
  readonly state?: string
  readonly queueName?: string | undefined
  readonly scheduleId?: string | undefined
  readonly flowControlKey?: string | undefined
  readonly callerIp?: string
  readonly labels?: string[]
  readonly responseStatus?: number
  /** Milliseconds since 1970. */
  readonly time: number
}

/** States that the filter value `IN_PROGRESS` stands for. */
const IN_PROGRESS = ['ACTIVE', 'RETRY', 'ERROR']

const READERS: Record<string, (item: Filterable) => (string | undefined)[]> = {
  messageId: (item) => [item.messageId],
  messageIds: (item) => [item.messageId],
  url: (item) => [item.url],
  host: (item) => [new URL(item.url).host],
  path: (item) => [new URL(item.url).pathname],
  state: (item) => [item.state, IN_PROGRESS.includes(item.state ?? '') ? 'IN_PROGRESS' : undefined],
  queueName: (item) => [item.queueName],
  scheduleId: (item) => [item.scheduleId],
  flowControlKey: (item) => [item.flowControlKey],
  callerIp: (item) => [item.callerIp],
  callerIP: (item) => [item.callerIp],
  label: (item) => item.labels ?? [],
  responseStatus: (item) => [String(item.responseStatus)],
  topicName: () => [],
}

/**
 * Builds the filter of a query: each parameter must match (and), one of its values is enough (or).
 * Values are repeated parameters or, except for URLs, separated by commas. Unknown parameters do not filter.
 */
export function readFilter(query: URLSearchParams): (item: Filterable) => boolean {
  const tests: ((item: Filterable) => boolean)[] = []
  for (const [name, read] of Object.entries(READERS)) {
    const given = query.getAll(name)
    if (given.length === 0) continue
    const wanted = new Set(name === 'url' ? given : given.flatMap((value) => value.split(',')))
    tests.push((item) => read(item).some((value) => value !== undefined && wanted.has(value)))
  }
  const from = Number(query.get('fromDate') ?? Number.NEGATIVE_INFINITY)
  const to = Number(query.get('toDate') ?? Number.POSITIVE_INFINITY)
  tests.push((item) => item.time >= from && item.time <= to)
  return (item) => tests.every((test) => test(item))
}

/** One page of a list and the cursor to the next. */
export interface Page<Item> {
  readonly items: Item[]
  readonly cursor?: string
}

/**
 * Cuts a page out of a list.
 *
 * @param items all items, in the order of the list
 * @param cursorOf the cursor that points behind an item; ends in `-<number>`, which orders the items
 * @param query `count` and `cursor`
 * @param most the largest and default count
 * @param latestFirst whether the numbers fall along the list
 */
export function cutPage<Item>(
  items: Item[],
  cursorOf: (item: Item) => string,
  query: URLSearchParams,
  most: number,
  latestFirst: boolean,
): Page<Item> {
  const count = Math.min(most, Number(query.get('count') ?? most) || most)
  const cursor = query.get('cursor')
  const after = cursor === null || cursor === '' ? undefined : sequenceOf(cursor)
  const rest = items.filter((item) => {
    const sequence = sequenceOf(cursorOf(item))
    return after === undefined || (latestFirst ? sequence < after : sequence > after)
  })
  const page = rest.slice(0, count)
  const last = page.at(-1)
  return { items: page, ...(rest.length > count && last !== undefined && { cursor: cursorOf(last) }) }
}

function sequenceOf(cursor: string): number {
  return Number(cursor.slice(cursor.lastIndexOf('-') + 1))
}
