import { encodeFrame } from '../../../lib/sse.ts'

/**
 * Types of the messages protocol for the exceptions of event streams, which come after status 200
 * (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html).
 */
const TYPES: Readonly<Record<string, string>> = {
  throttlingException: 'rate_limit_error',
  validationException: 'invalid_request_error',
  serviceUnavailableException: 'overloaded_error',
  modelTimeoutException: 'timeout_error',
}

/** An exception as the error event of the messages protocol. @param name in camel case, as in `:exception-type`. */
export function exceptionEvent(name: string, message: string): Uint8Array {
  const type = Object.hasOwn(TYPES, name) ? TYPES[name] : 'api_error'
  return encodeFrame('error', {
    type: 'error',
    error: { type, message: message || `The upstream reported ${name}.` },
  })
}
