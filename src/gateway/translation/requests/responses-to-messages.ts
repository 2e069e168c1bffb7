import { invalidRequest } from '../../../lib/api-error.ts'
import type { Json } from '../json.ts'
import type { TargetModel } from '../target-model.ts'

/**
 * A responses request as a messages request.
 * @throws ApiError invalid_request naming what the messages protocol cannot say.
 */
export function responsesToMessages(_request: Json, _target: TargetModel): Json {
  throw invalidRequest('input: responses are not supported by this model.')
}
