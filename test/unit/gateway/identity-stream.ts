/**
 * What the relay needs of the platform’s IdentityTransformStream, for runtimes without it: bytes pass unchanged, and
 * a write ends when its bytes have been read.
 */
class IdentityStream extends TransformStream<Uint8Array, Uint8Array> {
  constructor() {
    super({}, new CountQueuingStrategy({ highWaterMark: 1 }), { highWaterMark: 0 })
  }
}

export function provideIdentityStream(): void {
  const runtime = globalThis as Record<string, unknown>
  runtime.IdentityTransformStream ??= IdentityStream
}
