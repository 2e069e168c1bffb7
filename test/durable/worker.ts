/** The objects under test; the tests call them by their bindings, so there is nothing to fetch. */
export { Ledger } from '../../workers/ledger.ts'
export { ResponseSockets } from '../../workers/response-sockets.ts'
export { ResponseStream } from '../../workers/response-stream.ts'
export { WorkspaceObject } from '../../workers/tools/workspace.ts'
export { EventLogObject } from './event-log-object.ts'
export { PatientResponseStream } from './patient-response-stream.ts'
export { ScriptedResponse } from './scripted-response.ts'
export { ToolResponseStream } from './tool-response-stream.ts'
