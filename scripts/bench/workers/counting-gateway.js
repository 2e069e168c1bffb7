// The gateway with counters around its Worker, its Durable Objects and its bucket: requests, alarms, rows, and seconds with work.
import * as gateway from './gateway.js'

const counts = {
  workerRequests: 0,
  objectRequests: 0,
  objectAlarms: 0,
  objectRowsWritten: 0,
  objectRowsRead: 0,
  objectSeconds: 0,
  /** Operations of the bucket, of class A and of class B. */
  bucketWrites: 0,
  bucketReads: 0,
  /** Of `objectRowsWritten`, by the table; alarms and other calls of storage by their names. */
  rowsByTable: {},
}

/** Rows that a call of storage writes: those of a statement, one for any other call. */
const WRITES = { put: () => 1, setAlarm: () => 1 }
const BUCKET_METHODS = {
  bucketWrites: ['put', 'list', 'createMultipartUpload'],
  bucketReads: ['get', 'head'],
}
let countsRows = false
let countsBucket = false
/** Cursors whose rows have yet to be counted as read: that number grows while a cursor is read. */
let cursors = []

function countRead() {
  for (const cursor of cursors) counts.objectRowsRead += cursor.rowsRead
  cursors = []
}

function countBucket({ CONTENT: bucket }) {
  if (countsBucket) return
  countsBucket = true
  const prototype = Object.getPrototypeOf(bucket)
  for (const [member, names] of Object.entries(BUCKET_METHODS)) {
    for (const name of names) {
      const original = prototype[name]
      prototype[name] = function (...values) {
        counts[member] += 1
        return original.apply(this, values)
      }
    }
  }
}

/** The name of the table that a statement writes. */
const tableOf = (statement) =>
  /\b(?:INTO|UPDATE|FROM|TABLE)\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)/i.exec(statement)?.[1] ?? 'others'

function addRows(name, rows) {
  if (rows === 0) return
  counts.objectRowsWritten += rows
  counts.rowsByTable[name] = (counts.rowsByTable[name] ?? 0) + rows
}

function countRows(storage) {
  if (countsRows) return
  countsRows = true
  const wrap = (prototype, name, rowsOf) => {
    const original = prototype[name]
    prototype[name] = function (...values) {
      const result = original.apply(this, values)
      addRows(name === 'exec' ? tableOf(values[0]) : name, rowsOf(result))
      return result
    }
  }
  wrap(Object.getPrototypeOf(storage.sql), 'exec', (cursor) => {
    cursors.push(cursor)
    return cursor.rowsWritten
  })
  for (const [name, rowsOf] of Object.entries(WRITES)) wrap(Object.getPrototypeOf(storage), name, rowsOf)
}

/** The time in which an object has work that began and has not ended: calls, alarms, and what `waitUntil` waits for. */
class ActiveTime {
  #works = 0
  #since = 0

  async during(work) {
    if (this.#works === 0) this.#since = Date.now()
    this.#works += 1
    try {
      return await work
    } finally {
      countRead()
      this.#works -= 1
      if (this.#works === 0) counts.objectSeconds += (Date.now() - this.#since) / 1_000
    }
  }
}

function countedObject(Base) {
  class Counted extends Base {
    constructor(context, environment) {
      countRows(context.storage)
      countBucket(environment)
      const time = new ActiveTime()
      const waitUntil = context.waitUntil.bind(context)
      const value = (work) => waitUntil(time.during(work))
      Object.defineProperty(context, 'waitUntil', { value })
      super(context, environment)
      Object.defineProperty(this, 'activeTime', { value: time })
    }
  }
  for (const name of Object.getOwnPropertyNames(Base.prototype)) {
    const method = Object.getOwnPropertyDescriptor(Base.prototype, name)?.value
    if (name === 'constructor' || typeof method !== 'function') continue
    Counted.prototype[name] = function (...values) {
      counts[name === 'alarm' ? 'objectAlarms' : 'objectRequests'] += 1
      return this.activeTime.during(method.apply(this, values))
    }
  }
  return Counted
}

export const Ledger = countedObject(gateway.Ledger)
export const ResponseStream = countedObject(gateway.ResponseStream)
export const ResponsePool = countedObject(gateway.ResponsePool)
export const ResponseSockets = countedObject(gateway.ResponseSockets)
export const ConnectionCredentials = countedObject(gateway.ConnectionCredentials)

const worker = {
  fetch(request, environment, context) {
    if (new URL(request.url).pathname === '/bench/counts') return Response.json(counts)
    countBucket(environment)
    counts.workerRequests += 1
    return gateway.default.fetch(request, environment, context)
  },
}

// biome-ignore lint/style/noDefaultExport: the runtime takes a Worker's handlers from its default export
export default worker
