import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Navigate,
  Outlet,
} from '@tanstack/react-router'
import { addressToken } from './data/address-token.ts'
import { useMe } from './data/me.ts'
import { isSignedOut } from './data/refusals.ts'
import { Failure, Waiting } from './design/notice.tsx'
import { Shell } from './design/shell.tsx'
import { readSearch } from './pages/calls/period.ts'

/** The sitemap of the console. */
const root = createRootRoute()

/** The members of an address that are texts. */
const texts =
  <Name extends string>(...names: Name[]) =>
  (search: Record<string, unknown>): { [Key in Name]?: string } =>
    Object.fromEntries(
      names.flatMap((name) => (typeof search[name] === 'string' ? [[name, search[name]]] : [])),
    ) as { [Key in Name]?: string }

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  // Where somebody wanted to be, and why a sign-in with a company account failed.
  validateSearch: texts('to', 'failed'),
  component: lazyRouteComponent(() => import('./pages/sign-in/sign-in.tsx'), 'SignInPage'),
})
const setup = createRoute({
  getParentRoute: () => root,
  path: '/setup',
  component: lazyRouteComponent(() => import('./pages/setup/setup.tsx'), 'SetupPage'),
})
const start = createRoute({ getParentRoute: () => root, path: '/', component: StartPage })
const organization = createRoute({ getParentRoute: () => root, path: '/$slug', component: Organization })
const home = createRoute({
  getParentRoute: () => organization,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/home/home.tsx'), 'HomePage'),
})
const calls = createRoute({
  getParentRoute: () => organization,
  path: '/calls',
  validateSearch: readSearch,
  component: lazyRouteComponent(() => import('./pages/calls/calls.tsx'), 'CallsPage'),
})
const oneCall = createRoute({
  getParentRoute: () => organization,
  path: '/calls/$callId',
  validateSearch: readSearch,
  component: lazyRouteComponent(() => import('./pages/call/call.tsx'), 'CallPage'),
})
const playground = createRoute({
  getParentRoute: () => organization,
  path: '/playground',
  validateSearch: texts('model', 'surface'),
  component: lazyRouteComponent(() => import('./pages/playground/playground.tsx'), 'PlaygroundPage'),
})
const policies = createRoute({
  getParentRoute: () => organization,
  path: '/policies',
  component: lazyRouteComponent(() => import('./pages/policies/policies.tsx'), 'PoliciesPage'),
})
const onePolicy = createRoute({
  getParentRoute: () => organization,
  path: '/policies/$policyId',
  component: lazyRouteComponent(() => import('./pages/policies/policies.tsx'), 'PoliciesPage'),
})
const models = createRoute({
  getParentRoute: () => organization,
  path: '/models',
  validateSearch: texts('model'),
  component: lazyRouteComponent(() => import('./pages/models/models.tsx'), 'ModelsPage'),
})
const api = createRoute({
  getParentRoute: () => organization,
  path: '/settings/api',
  validateSearch: ({
    make,
    ...search
  }: Record<string, unknown>): { make?: true; key?: string; user?: string } => ({
    ...(make === true && { make }),
    ...texts('key', 'user')(search),
  }),
  component: lazyRouteComponent(() => import('./pages/settings-api/settings-api.tsx'), 'SettingsApiPage'),
})

export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    setup,
    start,
    organization.addChildren([home, calls, oneCall, playground, policies, onePolicy, models, api]),
  ]),
  basepath: '/console',
  scrollRestoration: true,
  defaultNotFoundComponent: () => <Navigate to="/" replace />,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}

/** Leads to the first page of the user's organization, or to the sign-in. */
function StartPage() {
  const me = useMe()
  if (addressToken('start') !== null) return <Navigate to="/sign-in" replace />
  if (me.data) return <Navigate to="/$slug" params={{ slug: me.data.organization.slug }} replace />
  if (isSignedOut(me.error)) return <Navigate to="/sign-in" replace />
  return me.error ? <Failure error={me.error} retry={() => me.refetch()} /> : <Waiting />
}

/** The frame of a signed-in user. A session that ends later keeps the page with what was typed there. */
function Organization() {
  const me = useMe()
  const { slug } = organization.useParams()
  if (!me.data) {
    const to = location.pathname + location.search
    if (isSignedOut(me.error)) return <Navigate to="/sign-in" search={{ to }} replace />
    return me.error ? <Failure error={me.error} retry={() => me.refetch()} /> : <Waiting />
  }
  if (slug !== me.data.organization.slug) return <Navigate to="/" replace />
  return (
    <Shell me={me.data}>
      <Outlet />
    </Shell>
  )
}
