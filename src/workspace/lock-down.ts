/**
 * Freezes the intrinsics of the isolate. Objects of one class may share an isolate, and with it every prototype: a command
 * that made the interpreter write to one would otherwise reach the workspaces of other conversations.
 *
 * A frozen property cannot be shadowed by assignment (`error.name = …` throws), which libraries do. On the prototypes where
 * that is usual, properties become accessors whose setter defines the property on the receiver.
 */
export function lockDown(): void {
  // Same effect as node --disable-proto=delete: code cannot reach a prototype by the name of a member.
  Reflect.deleteProperty(Object.prototype, '__proto__')
  for (const { prototype } of SHADOWED) allowShadowing(prototype)
  const frozen = new Set<unknown>([globalThis])
  for (const name of INTRINSICS) freezeAll(Reflect.get(globalThis, name), frozen)
  for (const hidden of hiddenPrototypes()) freezeAll(hidden, frozen)
}

/** Builtins of the language; those of the platform have no state that a command can reach. */
const INTRINSICS = [
  'Object',
  'Function',
  'Array',
  'Number',
  'Boolean',
  'String',
  'Symbol',
  'BigInt',
  'Date',
  'RegExp',
  'Promise',
  'Map',
  'Set',
  'WeakMap',
  'WeakSet',
  'WeakRef',
  'Proxy',
  'Reflect',
  'JSON',
  'Math',
  'Intl',
  'Iterator',
  'Atomics',
  'Error',
  'TypeError',
  'RangeError',
  'SyntaxError',
  'ReferenceError',
  'EvalError',
  'URIError',
  'AggregateError',
  'ArrayBuffer',
  'SharedArrayBuffer',
  'DataView',
  'Int8Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'Float32Array',
  'Float64Array',
  'BigInt64Array',
  'BigUint64Array',
  'parseInt',
  'parseFloat',
  'isNaN',
  'isFinite',
  'encodeURIComponent',
  'decodeURIComponent',
  'encodeURI',
  'decodeURI',
  'TextEncoder',
  'TextDecoder',
  'URL',
  'URLSearchParams',
  'Headers',
  'Buffer',
]

const SHADOWED: ReadonlyArray<{ prototype: object }> = [
  Object,
  Function,
  Array,
  Promise,
  Map,
  Set,
  RegExp,
  Date,
  Error,
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
  AggregateError,
]

function allowShadowing(prototype: object): void {
  for (const key of Reflect.ownKeys(prototype)) {
    const descriptor = Reflect.getOwnPropertyDescriptor(prototype, key)
    if (!descriptor?.configurable || !('value' in descriptor)) continue
    // Members with symbols are read often, and libraries never assign to them on an instance.
    if (typeof key === 'symbol') continue
    const { value, enumerable = false } = descriptor
    Object.defineProperty(prototype, key, {
      enumerable,
      configurable: false,
      get: () => value,
      set(this: object, assigned: unknown) {
        if (this === prototype) throw new TypeError(`Cannot assign to ${key} of a frozen prototype`)
        Object.defineProperty(this, key, {
          value: assigned,
          writable: true,
          enumerable: true,
          configurable: true,
        })
      },
    })
  }
}

function freezeAll(value: unknown, frozen: Set<unknown>): void {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || frozen.has(value))
    return
  frozen.add(value)
  // Bytes cannot be frozen, and are not shared.
  if (!ArrayBuffer.isView(value)) Object.freeze(value)
  freezeAll(Reflect.getPrototypeOf(value), frozen)
  for (const key of Reflect.ownKeys(value)) {
    const descriptor = Reflect.getOwnPropertyDescriptor(value, key)
    freezeAll(descriptor?.value, frozen)
    freezeAll(descriptor?.get, frozen)
    freezeAll(descriptor?.set, frozen)
  }
}

/** Prototypes without a name in the global scope. */
function hiddenPrototypes(): unknown[] {
  const instances: unknown[] = [
    (function* () {})(),
    (async function* () {})(),
    function* () {},
    async () => {},
    async function* () {},
    [][Symbol.iterator](),
    ''[Symbol.iterator](),
    ''.matchAll(/a/g),
    new Map().entries(),
    new Set().entries(),
  ]
  return instances.map((instance) => Reflect.getPrototypeOf(instance as object))
}
