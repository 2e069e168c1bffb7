// What a proxy costs in this runtime at the least: the request goes on as it came, the answer as it comes.
const proxy = {
  fetch(request, environment) {
    const { pathname, search } = new URL(request.url)
    return fetch(new Request(environment.UPSTREAM + pathname + search, request))
  },
}

// biome-ignore lint/style/noDefaultExport: the runtime takes a Worker's handlers from its default export
export default proxy
