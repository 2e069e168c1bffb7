import type { ServerResponse } from 'node:http'
import { toRecord, toText } from '../../json-value.ts'
import { recordIn, sendVendorJson } from '../vendor-request.ts'

/** An error in Amazon's form. */
export interface AwsFault {
  status: number
  type: string
  message: string
}

export const invalid = (message: string): AwsFault => ({ status: 400, type: 'ValidationException', message })

/** The scripted models by which a model of Bedrock answers, from the end of its id. */
export const scriptedModel = (model: string): string =>
  /scripted-messages[a-z-]*?(?=-v\d|$)/.exec(model)?.[0] ?? 'scripted-messages'

/** Exceptions by status (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html). */
const EXCEPTIONS: Record<number, string> = {
  400: 'ValidationException',
  401: 'AccessDeniedException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  413: 'ValidationException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
  529: 'ServiceUnavailableException',
}

/** The fault in an error answer of the messages protocol. */
export async function faultOf(answer: Response): Promise<AwsFault> {
  const text = await answer.text()
  const message = toText(toRecord(toRecord(recordIn(Buffer.from(text))).error).message) || text
  const status = answer.status === 529 ? 503 : answer.status === 401 ? 403 : answer.status
  return { status, type: EXCEPTIONS[answer.status] ?? 'ModelErrorException', message }
}

export function sendFault(response: ServerResponse, { status, type, message }: AwsFault): void {
  // Errors of access have the member with a capital letter.
  const body = status === 403 ? { Message: message } : { message }
  sendVendorJson(response, status, body, {
    'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
    'x-amzn-requestid': 'scripted',
  })
}
