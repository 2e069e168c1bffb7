// The gateway with counters around its Durable Objects: requests by binding and method, alarms, rows written.
import * as gateway from './gateway.js'

const counts = { requests: {}, alarms: 0, rows: 0 }

const countedStub = (binding, stub) =>
  new Proxy(stub, {
    get(target, property) {
      const member = target[property]
      if (typeof member !== 'function' || typeof property === 'symbol') return member
      return (...values) => {
        const name = `${binding}.${property}`
        counts.requests[name] = (counts.requests[name] ?? 0) + 1
        // Not by `apply`: on a stub that is the name of a remote method too.
        return target[property](...values)
      }
    },
  })

const countedNamespace = (binding, namespace) =>
  new Proxy(namespace, {
    get(target, property) {
      const member = target[property]
      if (typeof member !== 'function') return member
      const isStub = property === 'get' || property === 'getByName'
      return (...values) => {
        const result = target[property](...values)
        return isStub ? countedStub(binding, result) : result
      }
    },
  })

const BINDINGS = ['LEDGER', 'RESPONSE_STREAMS', 'RESPONSE_SOCKETS', 'CONNECTION_CREDENTIALS']
const counted = (environment) => ({
  ...environment,
  ...Object.fromEntries(BINDINGS.map((name) => [name, countedNamespace(name, environment[name])])),
})

/** What a call of storage writes: the rows of a statement, one for each other call. */
const WRITES = { put: () => 1, setAlarm: () => 1 }
let countsRows = false

function countRows(storage) {
  if (countsRows) return
  countsRows = true
  const wrap = (prototype, name, rowsOf) => {
    const original = prototype[name]
    prototype[name] = function (...values) {
      const result = original.apply(this, values)
      counts.rows += rowsOf(result)
      return result
    }
  }
  wrap(Object.getPrototypeOf(storage.sql), 'exec', (cursor) => cursor.rowsWritten)
  for (const [name, rowsOf] of Object.entries(WRITES)) wrap(Object.getPrototypeOf(storage), name, rowsOf)
}

const countedObject = (Base) =>
  class extends Base {
    constructor(context, environment) {
      countRows(context.storage)
      super(context, counted(environment))
    }

    alarm(...values) {
      counts.alarms += 1
      return super.alarm(...values)
    }
  }

export const Ledger = countedObject(gateway.Ledger)
export const ResponseStream = countedObject(gateway.ResponseStream)
export const ResponseSockets = countedObject(gateway.ResponseSockets)
export const ConnectionCredentials = countedObject(gateway.ConnectionCredentials)

const worker = {
  fetch(request, environment, context) {
    if (new URL(request.url).pathname === '/bench/object-counts') return Response.json(counts)
    return gateway.default.fetch(request, counted(environment), context)
  },
}

// biome-ignore lint/style/noDefaultExport: the runtime takes a Worker's handlers from its default export
export default worker
