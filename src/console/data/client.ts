import {
  type AnswerOf,
  callEndpoint,
  managementClient,
  type RequestOf,
} from '../../client/management-client.ts'
import type { EndpointName } from '../../wire/endpoints/endpoints.ts'

const client = managementClient({ baseUrl: location.origin })

/** Calls an endpoint of the management API with the session of this browser. @throws Refusal */
export const call = <Name extends EndpointName>(
  name: Name,
  request: RequestOf<Name>,
): Promise<AnswerOf<Name>> => callEndpoint(client, name, request)
